import t from 'tap'
import {
  addressName,
  connectionOptions,
  parseRedisUrl,
  type RedisAddress,
  redactedRedisUrl,
  redisUrlError
} from '../../src/shared/redis-address.js'

const parseOne = (url: string): RedisAddress => {
  const [address] = parseRedisUrl(url)
  if (address === undefined) throw new Error('no address')
  return address
}

t.test('the address of a server', async (t) => {
  const cases: [url: string, address: object, name: string][] = [
    [
      'redis://cache',
      { kind: 'server', host: 'cache', port: 6379, db: 0, username: '', password: '', isTls: false },
      'cache:6379'
    ],
    [
      'rediss://me:p%2Cw%40@[::1]:6380/3',
      { kind: 'server', host: '::1', port: 6380, db: 3, username: 'me', password: 'p,w@', isTls: true },
      '::1:6380/3'
    ],
    ['redis://:secret@10.0.0.1:1/', { host: '10.0.0.1', port: 1, db: 0, password: 'secret' }, '10.0.0.1:1']
  ]
  for (const [url, address, name] of cases) {
    t.test(`${url} is parsed`, async (t) => {
      t.match(parseOne(url), address)
      t.equal(addressName(parseOne(url)), name)
    })
  }

  t.test('a comma list is parsed to several addresses', async (t) => {
    t.same(parseRedisUrl('redis://a, redis://b:2').map(addressName), ['a:6379', 'b:2'])
  })
})

t.test('a Sentinel address', async (t) => {
  const cases: [url: string, address: object, name: string][] = [
    [
      'redis+sentinel://a,b:26380,[::1]:26381/mymaster',
      {
        kind: 'sentinel',
        masterName: 'mymaster',
        sentinels: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 26380 },
          { host: '::1', port: 26381 }
        ],
        db: 0,
        isTls: false
      },
      'sentinel/mymaster'
    ],
    [
      'rediss+sentinel://me:p%2Cw%40@a:1/my-master.1/15?sentinel_username=s&sentinel_password=q%26r',
      {
        masterName: 'my-master.1',
        username: 'me',
        password: 'p,w@',
        db: 15,
        isTls: true,
        sentinelUsername: 's',
        sentinelPassword: 'q&r'
      },
      'sentinel/my-master.1/15'
    ],
    ['redis+sentinel://:secret@a, b/m/', { password: 'secret', username: '', masterName: 'm', db: 0 }, 'sentinel/m']
  ]
  for (const [url, address, name] of cases) {
    t.test(`${url} is parsed`, async (t) => {
      t.same(parseRedisUrl(url).length, 1)
      t.match(parseOne(url), address)
      t.equal(addressName(parseOne(url)), name)
    })
  }

  t.test('TLS applies to the sentinels and to the server', async (t) => {
    t.match(connectionOptions(parseOne('rediss+sentinel://a/m')), {
      name: 'm',
      sentinels: [{ host: 'a', port: 26379 }],
      tls: {},
      sentinelTLS: {},
      enableTLSForSentinelMode: true
    })
    const plain = connectionOptions(parseOne('redis+sentinel://a/m'))
    t.notOk('tls' in plain || 'sentinelTLS' in plain)
  })

  t.test('the password of the server is not sent to the sentinels', async (t) => {
    const { password, sentinelPassword } = connectionOptions(parseOne('redis+sentinel://:secret@a/m'))
    t.same([password, sentinelPassword], ['secret', undefined])
  })
})

t.test('a malformed address', async (t) => {
  const cases: [url: string, reason: RegExp][] = [
    ['', /must begin with/],
    ['localhost:6379', /must begin with/],
    ['http://:hunter2@host', /must begin with/],
    ['redis://a,,redis://b', /must begin with/],
    ['redis://', /host/],
    ['redis://:hunter2@', /host/],
    ['redis://:hunter2@host:99999', /host or port/],
    ['redis://:hunter2@host/name', /database/],
    ['redis://host/123456', /database/],
    ['redis://host?password=hunter2', /query/],
    ['redis://host#hunter2', /query/],
    ['redis://:%hunter2@host', /percent/],
    ['redis://a,redis+sentinel://:hunter2@b/m', /list/],
    ['redis+sentinel://:hunter2@a', /name of the master/],
    ['redis+sentinel://:hunter2@a/', /name of the master/],
    ['redis+sentinel://a/my master', /name of the master/],
    ['redis+sentinel:///mymaster', /host/],
    ['redis+sentinel://a,,b/mymaster', /host/],
    ['redis+sentinel://a:port/mymaster', /host or port/],
    ['redis+sentinel://a/mymaster/x', /database/],
    ['redis+sentinel://a/mymaster/1/2', /nothing may follow/],
    ['redis+sentinel://:hun@ter2@a/mymaster', /percent-encoded/],
    ['redis+sentinel://:hun/ter2@a/mymaster', /name of the master/],
    ['redis+sentinel://:%hunter2@a/mymaster', /%25/],
    ['redis+sentinel://a/mymaster?password=hunter2', /query/],
    ['redis+sentinel://a/mymaster?sentinel_password=a&sentinel_password=hunter2', /once/],
    ['redis+sentinel://a/mymaster#hunter2', /percent-encoded/],
    ['redis+sentinel://a/m,redis://b', /name of the master|nothing may follow|database/]
  ]
  for (const [url, reason] of cases) {
    t.test(`${JSON.stringify(url)} is rejected with a reason that contains no secret`, async (t) => {
      const error = redisUrlError(url)
      t.match(error, reason)
      t.notMatch(error, /hun/)
    })
  }
})

t.test('an address is shown without credentials', async (t) => {
  const cases: [url: string, shown: string][] = [
    ['redis://user:hunter2@a,rediss://:hunter2@[::1]:1/2', 'redis://a:6379,rediss://[::1]:1/2'],
    [
      'rediss+sentinel://user:hunter2@a,b:1/mymaster/3?sentinel_password=hunter2',
      'rediss+sentinel://a:26379,b:1/mymaster/3'
    ]
  ]
  for (const [url, shown] of cases) t.equal(redactedRedisUrl(url), shown)
})
