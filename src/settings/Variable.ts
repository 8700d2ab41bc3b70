import { Config, ConfigError, Duration, Either, Redacted } from "effect"
import { type AddressRange, parseRange } from "../services/access/AddressRange.ts"

/** One environment variable: how it is read, and how it is explained. */
export interface Variable<A> {
  readonly name: string
  /** The default as help shows it. */
  readonly shown: string
  readonly about: string
  readonly config: Config.Config<A>
}

interface Definition<A> {
  readonly about: string
  readonly fallback: A
  readonly shown: string
  /** Completes "NAME must be …". Values are never repeated: any of them may be a secret in the wrong place. */
  readonly accepts: string
  /** Undefined refuses the text. */
  readonly parse: (text: string) => A | undefined
}

export const variable = <A>(name: string, { about, accepts, fallback, parse, shown }: Definition<A>): Variable<A> => ({
  name,
  shown,
  about,
  config: Config.string(name).pipe(
    Config.mapOrFail((text) => {
      const value = parse(text.trim())
      return value === undefined ? Either.left(ConfigError.InvalidData([], `must be ${accepts}`)) : Either.right(value)
    }),
    Config.withDefault(fallback)
  )
})

const orUnset = <A>(name: string, definition: Omit<Definition<A | undefined>, "fallback" | "shown">) =>
  variable<A | undefined>(name, { ...definition, fallback: undefined, shown: "" })

export const text = <A extends string | undefined>(name: string, fallback: A, about: string) =>
  variable<string | A>(name, { about, fallback, shown: fallback ?? "", accepts: "a text", parse: (value) => value })

export const secret = (name: string, about: string) =>
  orUnset<Redacted.Redacted>(name, { about, accepts: "a text", parse: Redacted.make })

const digits = /^\d+$/
const decimal = /^\d+(\.\d+)?$/

export const integer = (
  name: string,
  fallback: number,
  about: string,
  { from = 0, to = Number.MAX_SAFE_INTEGER }: { readonly from?: number; readonly to?: number }
) =>
  variable(name, {
    about,
    fallback,
    shown: String(fallback),
    accepts: to === Number.MAX_SAFE_INTEGER ? `an integer of at least ${from}` : `an integer from ${from} to ${to}`,
    parse: (value) => {
      const number = digits.test(value) ? Number(value) : Number.NaN
      return number >= from && number <= to ? number : undefined
    }
  })

const mostProcesses = 256

export const processes = (name: string, about: string) =>
  variable<number | "auto">(name, {
    about,
    fallback: 1,
    shown: "1",
    accepts: `auto or an integer from 1 to ${mostProcesses}`,
    parse: (value) => {
      if (value.toLowerCase() === "auto") return "auto"
      const number = digits.test(value) ? Number(value) : 0
      return number >= 1 && number <= mostProcesses ? number : undefined
    }
  })

// Timers of the platform wrap around beyond this.
const maxSeconds = 2_147_483

export const seconds = (name: string, fallback: number, about: string) =>
  variable(name, {
    about,
    fallback: Duration.seconds(fallback),
    shown: String(fallback),
    accepts: `a number of seconds above 0 and up to ${maxSeconds}`,
    parse: (value) => {
      const number = decimal.test(value) ? Number(value) : 0
      return number > 0 && number <= maxSeconds ? Duration.seconds(number) : undefined
    }
  })

/** As `seconds`, of which 0 is one. */
export const delay = (name: string, shown: string, about: string): Variable<Duration.Duration | undefined> => ({
  ...orUnset<Duration.Duration>(name, {
    about,
    accepts: `a number of seconds from 0 to ${maxSeconds}`,
    parse: (value) => {
      const number = decimal.test(value) ? Number(value) : Number.NaN
      return number <= maxSeconds ? Duration.seconds(number) : undefined
    }
  }),
  shown
})

const truths = new Map([
  ["true", true],
  ["1", true],
  ["yes", true],
  ["false", false],
  ["0", false],
  ["no", false]
])

export const flag = <A extends boolean | undefined>(name: string, fallback: A, about: string) =>
  variable<boolean | A>(name, {
    about,
    fallback,
    shown: String(fallback ?? ""),
    accepts: "true or false",
    parse: (value) => truths.get(value.toLowerCase())
  })

export const choice = <A>(
  name: string,
  options: Readonly<Record<string, A>>,
  shown: string,
  fallback: A,
  about: string
) =>
  variable(name, {
    about,
    fallback,
    shown,
    accepts: `one of ${Object.keys(options).join(", ")}`,
    parse: (value) => new Map(Object.entries(options)).get(value.toLowerCase())
  })

const parseUrl = (value: string, protocols: ReadonlyArray<string>) => {
  const url = URL.canParse(value) ? new URL(value) : undefined
  return url !== undefined && protocols.includes(url.protocol) && url.hostname !== "" ? url : undefined
}

/** Kept without a trailing slash, so that paths can be appended. */
export const baseUrl = (name: string, about: string) =>
  orUnset<string>(name, {
    about,
    accepts: "an http or https URL without query or fragment",
    parse: (value) => {
      const url = parseUrl(value, ["http:", "https:"])
      return url === undefined || url.search !== "" || url.hash !== "" ? undefined : value.replace(/\/+$/, "")
    }
  })

export const databaseUrl = (name: string, about: string) =>
  orUnset<Redacted.Redacted>(name, {
    about,
    accepts: "a postgres:// or postgresql:// URL",
    parse: (value) => {
      const known = /^postgres(ql)?:\/\/./.test(value)
      return known && URL.canParse(value) ? Redacted.make(value) : undefined
    }
  })

const list = <A>(name: string, about: string, accepts: string, parse: (item: string) => A | undefined) =>
  variable<ReadonlyArray<A>>(name, {
    about,
    fallback: [],
    shown: "",
    accepts: `a comma-separated list of ${accepts}`,
    parse: (value) => {
      const items = value.split(",").flatMap((item) => (item.trim() === "" ? [] : [parse(item.trim())]))
      const known = items.filter((item) => item !== undefined)
      return known.length === items.length ? known : undefined
    }
  })

export const ranges = (name: string, about: string): Variable<ReadonlyArray<AddressRange>> =>
  list(name, about, "addresses and CIDRs", parseRange)

export const origins = (name: string, about: string) =>
  list(name, about, "origins such as https://app.example, or *", (item) => {
    const origin = parseUrl(item, ["http:", "https:"])?.origin
    return item === "*" || item === origin ? item : undefined
  })
