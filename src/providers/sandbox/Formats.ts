const two = (number: number): string => String(number).padStart(2, "0")
const day = (n: number): string => `2026-${two(1 + (Math.floor(n / 28) % 12))}-${two(1 + (n % 28))}`
const clock = (n: number): string => `${two(9 + (n % 12))}:${two(Math.floor(n / 12) % 60)}:00Z`
const numbered = (name: string, n: number): string => (n === 0 ? name : `${name}-${n}`)

interface Format {
  /** The `n`th example, with `name` in it where there is room for a name. */
  readonly example: (name: string, n: number) => string
  readonly shape: RegExp
}

const email: Format = { example: (name, n) => `${numbered(name, n)}@example.com`, shape: /^[^@\s]+@[^@\s]+$/ }
const host: Format = { example: (name, n) => `${numbered(name, n)}.example.com`, shape: /^[\p{L}\p{N}.-]{1,253}$/u }
const uri: Format = {
  example: (name, n) => `https://example.com/${numbered(name, n)}`,
  shape: /^[a-z][a-z0-9+.-]*:\S+$/i
}
const reference: Format = { example: (name, n) => `/${numbered(name, n)}`, shape: /^\S*$/ }

const formats: Readonly<Record<string, Format>> = {
  date: { example: (_, n) => day(n), shape: /^\d{4}-\d{2}-\d{2}$/ },
  "date-time": { example: (_, n) => `${day(n)}T12:00:00Z`, shape: /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}\S*$/ },
  time: { example: (_, n) => clock(n), shape: /^\d{2}:\d{2}:\d{2}\S*$/ },
  duration: { example: (_, n) => `PT${n + 1}H`, shape: /^P[\dTYMWDHS]+$/ },
  email,
  "idn-email": email,
  hostname: host,
  "idn-hostname": host,
  uri,
  url: uri,
  iri: uri,
  "uri-template": uri,
  "uri-reference": reference,
  "iri-reference": reference,
  ipv4: { example: (_, n) => `192.0.2.${1 + (n % 254)}`, shape: /^\d{1,3}(\.\d{1,3}){3}$/ },
  ipv6: { example: (_, n) => `2001:db8::${((1 + n) % 0xffff).toString(16)}`, shape: /^[\da-f:.]*:[\da-f:.]*$/i },
  uuid: {
    example: (_, n) => `00000000-0000-4000-8000-${(1 + n).toString(16).padStart(12, "0")}`,
    shape: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i
  },
  "json-pointer": { example: (name, n) => `/${numbered(name, n)}`, shape: /^(\/|$)/ },
  "relative-json-pointer": { example: (_, n) => `${n}`, shape: /^\d/ }
}

const known = (format: string): Format | undefined => (Object.hasOwn(formats, format) ? formats[format] : undefined)

/** The `n`th example of a format, named after `topic`; undefined for a format unknown here. */
export const formatted = (format: string, topic: string, n: number): string | undefined => {
  const name = topic
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 24)
    .replaceAll(/^-+|-+$/g, "")
  return known(format)?.example(name === "" ? "sandbox" : name, n)
}

/** Whether `text` looks like one of a format; true for a format unknown here. */
export const hasFormat = (format: string, text: string): boolean => known(format)?.shape.test(text) ?? true
