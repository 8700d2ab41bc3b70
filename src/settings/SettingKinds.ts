import { Duration, Redacted } from "effect"
import { oneOfWords } from "../domain/Wording.ts"
import { type AddressRange, parseRange } from "../services/access/BlockList.ts"
import { databaseUrlForm, encodeStrayPercents, isDecodable, normalizeDatabaseUrl } from "../services/sql/DatabaseUrl.ts"

export interface Kind<A> {
  /** Completes the error message "NAME must be …". */
  readonly accepts: string
  readonly parse: (text: string) => A | undefined
}

export const text: Kind<string> = { accepts: "a text", parse: (value) => value }

const printable = /^[^\p{C}\p{Zl}\p{Zp}]+$/u

export const printableText = (maxLength: number): Kind<string> => ({
  accepts: `a text of at most ${maxLength} printable characters`,
  parse: (value) => (value.length <= maxLength && printable.test(value) ? value : undefined)
})

const maxLines = 8
const maxLineLength = 100

/** Also splits at `\n`, because not every reader of a `.env` file replaces it by a line break. Returns lines without empty ones. */
export const printableLines: Kind<string> = {
  accepts: `at most ${maxLines} lines, separated by \\n, of at most ${maxLineLength} printable characters each`,
  parse: (value) => {
    const lines = value
      .split(/\r?\n|\\n/)
      .map((line) => line.trim())
      .filter((line) => line !== "")
    const line = printableText(maxLineLength)
    const isValid = lines.length <= maxLines && lines.every((text) => line.parse(text) !== undefined)
    return isValid && lines.length > 0 ? lines.join("\n") : undefined
  }
}

/** Removes the brackets that IPv6 addresses have in URLs, because sockets expect none. */
export const host: Kind<string> = {
  accepts: "an address or a name",
  parse: (value) => value.replace(/^\[(.*)\]$/, "$1")
}

export const secret: Kind<Redacted.Redacted> = { accepts: "a text", parse: Redacted.make }

const prefixedSecret = (accepts: string, pattern: RegExp): Kind<Redacted.Redacted> => ({
  accepts,
  parse: (value) => (pattern.test(value) ? Redacted.make(value) : undefined)
})

export const stripeKey = prefixedSecret(
  "a key that begins with sk_live_, sk_test_, rk_live_ or rk_test_",
  /^[sr]k_(?:live|test)_[!-~]+$/
)
export const stripeWebhookSecret = prefixedSecret("a secret that begins with whsec_", /^whsec_[!-~]+$/)

const numberIn = (value: string, form: RegExp, from: number, to: number) => {
  const number = form.test(value) ? Number(value) : Number.NaN
  return number >= from && number <= to ? number : undefined
}

export const integer = (from = 0, to = Number.MAX_SAFE_INTEGER): Kind<number> => ({
  accepts: to === Number.MAX_SAFE_INTEGER ? `an integer of at least ${from}` : `an integer from ${from} to ${to}`,
  parse: (value) => numberIn(value, /^\d+$/, from, to)
})

const maxWorkers = 256

export const workers: Kind<number | "auto"> = {
  accepts: `auto or an integer from 1 to ${maxWorkers}`,
  parse: (value) => (value.toLowerCase() === "auto" ? "auto" : integer(1, maxWorkers).parse(value))
}

// Node's timers overflow above this.
const maxSeconds = 2_147_483

const durationIn = (value: string, from: number) => {
  const number = numberIn(value, /^\d+(\.\d+)?$/, from, maxSeconds)
  return number === undefined ? undefined : Duration.seconds(number)
}

export const seconds: Kind<Duration.Duration> = {
  accepts: `a number of seconds above 0 and up to ${maxSeconds}`,
  parse: (value) => durationIn(value, Number.MIN_VALUE)
}

export const secondsOrNone: Kind<Duration.Duration> = {
  accepts: `a number of seconds from 0 to ${maxSeconds}`,
  parse: (value) => durationIn(value, 0)
}

export const choice = <A>(options: Readonly<Record<string, A>>): Kind<A> => ({
  accepts: oneOfWords(Object.keys(options)),
  parse: (value) => new Map(Object.entries(options)).get(value.toLowerCase())
})

export const oneOf = <const Words extends ReadonlyArray<string>>(...words: Words): Kind<Words[number]> => ({
  accepts: oneOfWords(words),
  parse: (value) => words.find((word) => word === value.toLowerCase())
})

export const flag: Kind<boolean> = {
  ...choice({ true: true, 1: true, yes: true, false: false, 0: false, no: false }),
  accepts: "true or false"
}

const parseUrl = (value: string) => {
  const url = URL.canParse(value) ? new URL(value) : undefined
  return url !== undefined && /^https?:$/.test(url.protocol) && url.hostname !== "" ? url : undefined
}

/** Removes trailing slashes. */
export const baseUrl: Kind<string> = {
  accepts: "an http or https URL without query or fragment",
  parse: (value) => {
    const url = parseUrl(value)
    return url === undefined || url.search !== "" || url.hash !== "" ? undefined : value.replace(/\/+$/, "")
  }
}

/** Rejects a scheme or a path, because they would become part of every object's URL. */
export const bucketName: Kind<string> = {
  accepts: "a bucket name without s3:// and without a path",
  parse: (value) => (/^[A-Za-z0-9][\w.-]*$/.test(value) ? value : undefined)
}

/** A secret, because the URL may contain a password. */
export const proxyUrl: Kind<Redacted.Redacted> = {
  accepts: "the http or https URL of a proxy",
  parse: (value) => {
    const url = parseUrl(encodeStrayPercents(value.includes("://") ? value : `http://${value}`))
    if (url === undefined || ![url.username, url.password].every(isDecodable)) return undefined
    return Redacted.make(url.href)
  }
}

export const databaseUrl: Kind<Redacted.Redacted> = {
  accepts: databaseUrlForm,
  parse: (value) => (normalizeDatabaseUrl(value) === undefined ? undefined : Redacted.make(value))
}

const list = <A>(accepts: string, parse: (item: string) => A | undefined): Kind<ReadonlyArray<A>> => ({
  accepts: `a comma-separated list of ${accepts}`,
  parse: (value) => {
    const items = value.split(",").flatMap((item) => (item.trim() === "" ? [] : [parse(item.trim())]))
    const parsed = items.filter((item) => item !== undefined)
    return parsed.length === items.length ? parsed : undefined
  }
})

export const ranges: Kind<ReadonlyArray<AddressRange>> = list("addresses and CIDRs", parseRange)

const decodePair = (item: string): readonly [string, string] | undefined => {
  const [, name, value = ""] = /^([^=\s]+)\s*=\s*(.*)$/.exec(item) ?? []
  try {
    return name === undefined ? undefined : [decodeURIComponent(name), decodeURIComponent(value)]
  } catch {
    return undefined
  }
}

const pairList = list("name=value", decodePair)

/** Decodes percent-encoding, as OpenTelemetry specifies. */
export const pairs: Kind<Readonly<Record<string, string>>> = {
  accepts: pairList.accepts,
  parse: (value) => {
    const decoded = pairList.parse(value)
    return decoded && Object.fromEntries(decoded)
  }
}

const isHeader = ([name, value]: readonly [string, string]): boolean =>
  /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)

export const secretHeaders: Kind<Redacted.Redacted<Readonly<Record<string, string>>>> = {
  accepts: "a comma-separated list of headers, name=value",
  parse: (value) => {
    const headers = pairs.parse(value)
    return headers && Object.entries(headers).every(isHeader) ? Redacted.make(headers) : undefined
  }
}

const maxCents = 99_999_999

/** Parses an amount in USD to cents. */
export const cents: Kind<number> = {
  accepts: "an amount in USD from 0.5 to 999999.99, with at most 2 decimals",
  parse: (value) => {
    const number = /^\d{1,6}(?:\.\d{1,2})?$/.test(value) ? Math.round(Number(value) * 100) : 0
    return number >= 50 && number <= maxCents ? number : undefined
  }
}

export const ratio: Kind<number> = {
  accepts: "a number from 0 to 1",
  parse: (value) => numberIn(value, /^\d*\.?\d+$/, 0, 1)
}

// `URL` accepts a wildcard host such as *.example, which would match no page's origin.
const isOrigin = (item: string): boolean => item === parseUrl(item)?.origin && !item.includes("*")

export const origins = list("origins such as https://app.example, each in full, or *", (item) =>
  item === "*" || isOrigin(item) ? item : undefined
)
