import t from 'tap'
import { AddressSet, isAddressRange, normalAddress } from '../../src/shared/ip-address.js'

t.test('normalAddress', async (t) => {
  const found: [text: string, address: string, title: string][] = [
    ['203.0.113.7', '203.0.113.7', 'an IPv4 address'],
    ['2001:db8::7', '2001:db8::7', 'an IPv6 address'],
    ['2001:DB8::A', '2001:db8::a', 'capital letters'],
    ['  203.0.113.7\t', '203.0.113.7', 'blanks around it'],
    ['203.0.113.7:5555', '203.0.113.7', 'an IPv4 address with a port'],
    ['203.0.113.7:1', '203.0.113.7', 'the shortest port'],
    ['203.0.113.7:65535', '203.0.113.7', 'the longest port'],
    ['[2001:db8::7]', '2001:db8::7', 'brackets'],
    ['[2001:db8::7]:443', '2001:db8::7', 'brackets and a port'],
    ['[203.0.113.7]:443', '203.0.113.7', 'brackets around an IPv4 address'],
    ['2001:db8::7:443', '2001:db8::7:443', 'an IPv6 address that ends like a port'],
    ['fe80::1%eth0', 'fe80::1', 'a zone'],
    ['[fe80::1%eth0]:443', 'fe80::1', 'a zone, brackets and a port'],
    ['::ffff:203.0.113.7', '203.0.113.7', 'IPv4 on a dual-stack socket'],
    ['::FFFF:203.0.113.7', '203.0.113.7', 'the same in capital letters'],
    ['[::ffff:203.0.113.7]:443', '203.0.113.7', 'the same with brackets and a port'],
    ['::ffff:203.0.113.7%eth0', '203.0.113.7', 'the same with a zone'],
    ['::', '::', 'the unspecified address']
  ]
  for (const [text, address, title] of found) {
    t.test(`normalAddress finds the address in ${title}`, async (t) => t.equal(normalAddress(text), address))
  }

  const garbage = [
    '',
    ' ',
    'unknown',
    '_hidden',
    'localhost',
    'example.com:443',
    '203.0.113',
    '203.0.113.256',
    '203.0.113.7.9',
    '203.0.113.07',
    '0x7f.0.0.1',
    '2130706433',
    '203.0.113.7:',
    '203.0.113.7:port',
    '203.0.113.7:123456',
    '203.0.113.7, 203.0.113.8',
    '203.0.113.7/32',
    '[2001:db8::7',
    '2001:db8::7]',
    '[2001:db8::7]443',
    '[2001:db8::7]:',
    '[[2001:db8::7]]',
    '[]',
    '[unknown]:443',
    '"[2001:db8::7]:443"',
    '2001:db8:::7',
    '1:2:3:4:5:6:7:8:9',
    '::ffff:203.0.113.256',
    '%eth0',
    ':443'
  ]
  for (const text of garbage) {
    t.test(`normalAddress returns null for '${text}'`, async (t) => t.equal(normalAddress(text), null))
  }
})

t.test('isAddressRange', async (t) => {
  const ranges = [
    'loopback',
    '192.0.2.7',
    '192.0.2.7/32',
    '10.0.0.0/8',
    '10.1.2.3/8',
    '0.0.0.0/0',
    '::1',
    '2001:db8::/32',
    '2001:DB8::7/128',
    '::/0'
  ]
  for (const text of ranges) {
    t.test(`isAddressRange accepts ${text}`, async (t) => t.equal(isAddressRange(text), true))
  }

  const rejected: [text: string, title: string][] = [
    ['true', 'everybody'],
    ['false', 'a flag'],
    ['0', 'no hop'],
    ['1', 'a number of hops'],
    ['*', 'a pattern'],
    ['10.0.0.*', 'a pattern inside an address'],
    ['', 'nothing'],
    ['LOOPBACK', 'the word in capital letters'],
    ['linklocal', 'a word that we do not have'],
    ['localhost', 'a name'],
    ['10.0.0.0/33', 'a prefix longer than an IPv4 address'],
    ['2001:db8::/129', 'a prefix longer than an IPv6 address'],
    ['10.0.0.0/-1', 'a negative prefix'],
    ['10.0.0.0/', 'a slash without a prefix'],
    ['/8', 'a prefix without an address'],
    ['10.0.0.0/8/8', 'two prefixes'],
    ['10.0.0.0/255.0.0.0', 'a mask'],
    ['10.0.0.0/1000', 'a prefix of four digits'],
    ['10.0.0.256', 'an address that is none'],
    ['10.0.0.0-10.0.0.9', 'a span'],
    ['10.0.0.1:80', 'a port'],
    ['[::1]', 'brackets'],
    [' 10.0.0.1', 'a blank before it'],
    ['10.0.0.1, 10.0.0.2', 'two addresses at once']
  ]
  for (const [text, title] of rejected) {
    t.test(`isAddressRange rejects ${title}: '${text}'`, async (t) => {
      t.equal(isAddressRange(text), false)
      t.throws(() => new AddressSet([text]), { name: 'TypeError', message: `not an address range: ${text}` })
    })
  }
})

t.test('AddressSet', async (t) => {
  const membership: [range: string, inside: string[], outside: string[]][] = [
    ['192.0.2.7', ['192.0.2.7'], ['192.0.2.6', '192.0.2.8', '::1']],
    ['192.0.2.7/32', ['192.0.2.7'], ['192.0.2.6', '192.0.2.8']],
    ['192.0.2.6/31', ['192.0.2.6', '192.0.2.7'], ['192.0.2.5', '192.0.2.8']],
    ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255'], ['9.255.255.255', '11.0.0.0', '::']],
    ['10.1.2.3/8', ['10.0.0.0', '10.255.255.255'], ['9.255.255.255', '11.0.0.0']],
    ['172.16.0.0/12', ['172.16.0.0', '172.31.255.255'], ['172.15.255.255', '172.32.0.0']],
    ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255'], ['::1', '2001:db8::7']],
    ['2001:db8::7', ['2001:db8::7', '2001:0DB8:0:0:0:0:0:7'], ['2001:db8::6', '2001:db8::8']],
    ['2001:db8::/32', ['2001:db8::', '2001:db8:ffff::1'], ['2001:db7:ffff::', '2001:db9::', '32.1.13.184']],
    ['2001:db8::/63', ['2001:db8::1', '2001:db8:0:1::1'], ['2001:db8:0:2::1']],
    ['loopback', ['127.0.0.1', '127.255.255.254', '::1'], ['126.255.255.255', '128.0.0.0', '::', '::2']]
  ]
  for (const [range, inside, outside] of membership) {
    t.test(`an AddressSet of ${range} has exactly the addresses of the range`, async (t) => {
      const set = new AddressSet([range])

      t.same(
        inside.filter((address) => !set.has(address)),
        [],
        'inside'
      )
      t.same(
        outside.filter((address) => set.has(address)),
        [],
        'outside'
      )
    })
  }

  t.test('an AddressSet has the addresses of all its ranges', async (t) => {
    const set = new AddressSet(['loopback', '10.0.0.0/8', '2001:db8::/32'])

    for (const address of ['127.0.0.1', '::1', '10.1.2.3', '2001:db8::7']) t.equal(set.has(address), true, address)
    t.equal(set.has('192.0.2.7'), false)
  })

  t.test('an AddressSet without ranges is empty', async (t) => {
    for (const address of ['127.0.0.1', '::1', '0.0.0.0', '::'])
      t.equal(new AddressSet([]).has(address), false, address)
  })

  t.test('an AddressSet accepts every notation of sockets and proxies', async (t) => {
    const set = new AddressSet(['10.0.0.0/8', 'fe80::/10'])

    for (const text of [
      '10.1.2.3:5555',
      '[10.1.2.3]:443',
      '::ffff:10.1.2.3',
      '::ffff:a01:203',
      '[::ffff:10.1.2.3]:443',
      'FE80::1',
      'fe80::1%eth0',
      '[fe80::1%eth0]:443'
    ])
      t.equal(set.has(text), true, text)
  })

  t.test('an AddressSet does not have texts that are not addresses', async (t) => {
    const set = new AddressSet(['0.0.0.0/0', '::/0'])

    t.equal(set.has('192.0.2.7'), true, 'though it has every address')
    for (const text of ['', 'unknown', 'loopback', '10.0.0.0/8', '[::1', '10.1.2.3:'])
      t.equal(set.has(text), false, text)
    t.equal(set.has(undefined), false, 'the peer of a connection that is gone')
  })
})
