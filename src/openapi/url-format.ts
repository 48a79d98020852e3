const BYTE = '(?:1?\\d{1,2}|2[0-4]\\d|25[0-5])'
const LAST_BYTE = '(?:[1-9]\\d?|1\\d\\d|2[0-4]\\d|25[0-4])'
/** The first bytes of addresses that are public, whatever the others are. */
const PUBLIC = Array.from({ length: 223 }, (_, index) => index + 1).filter(
  (byte) => ![10, 127, 169, 172, 192].includes(byte)
)

/** Public IPv4 addresses: without loopback, link-local and private ones. */
const PUBLIC_IPV4 = [
  `(?:${PUBLIC.join('|')})\\.${BYTE}`,
  '169\\.(?:1?\\d{1,2}|2[0-4]\\d|25[0-35])',
  '172\\.(?:\\d|0\\d|1[0-5]|3[2-9]|[4-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])',
  '192\\.(?:\\d{1,2}|1(?:[0-57-9]\\d|6[0-79])|2[0-4]\\d|25[0-5])'
]

const LETTERS = 'a-zA-Z\\u00a1-\\uffff'
const LABEL = `(?:[${LETTERS}0-9]+-)*[${LETTERS}0-9]+`

/**
 * The format `url` of Ajv without look-ahead: a text of 50,000 characters keeps Ajv's own expression busy for seconds. All
 * other formats take linear time.
 */
export const URL_FORMAT = [
  '^(?:[hH][tT][tT][pP][sS]?|[fF][tT][pP])://(?:\\S+@)?',
  `(?:(?:${PUBLIC_IPV4.join('|')})\\.${BYTE}\\.${LAST_BYTE}|${LABEL}(?:\\.${LABEL})*\\.[${LETTERS}]{2,})`,
  '(?::\\d{2,5})?(?:/\\S*)?$'
].join('')
