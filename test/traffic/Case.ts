/** The cases of this folder's YAML files; README.md describes their format. */

import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { Schema } from "effect"
import { parse } from "yaml"

export const dialects = ["chat", "responses", "messages"] as const
/** `api`: any other endpoint, whose answer is read as it is. */
export type Dialect = (typeof dialects)[number] | "api"

export const wires = ["openai-chat", "openai-responses", "anthropic", "gemini"] as const
/** The wires of image hosts. */
export const mediaWires = ["openai-images"] as const
export type ChatWireName = (typeof wires)[number]
export type Wire = ChatWireName | (typeof mediaWires)[number]

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
const Strings = Schema.Array(Schema.String)
const Fields = Schema.Record({ key: Schema.String, value: Schema.Unknown })
/** An object, or its JSON as text. */
const Json = Schema.Union(Fields, Schema.String)
const perDialect = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.Struct({
    chat: optional(schema),
    responses: optional(schema),
    messages: optional(schema),
    api: optional(schema)
  })
const perWire = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.Struct({
    "openai-chat": optional(schema),
    "openai-responses": optional(schema),
    anthropic: optional(schema),
    gemini: optional(schema),
    "openai-images": optional(schema)
  })

const Tool = Schema.Struct({
  name: Schema.String,
  description: optional(Schema.String),
  parameters: optional(Schema.NullOr(Json)),
  strict: optional(Schema.NullOr(Schema.Boolean))
})

const Format = Schema.Struct({
  name: optional(Schema.String),
  schema: Json,
  strict: optional(Schema.Boolean)
})

/** In the words of chat completions; `bodies` instead has whole bodies, `extra` more fields of a dialect. */
const Request = Schema.Struct({
  system: optional(Schema.String),
  messages: optional(Schema.Array(Fields)),
  tools: optional(Schema.Array(Tool)),
  tool_choice: optional(Schema.Union(Schema.String, Schema.Struct({ name: Schema.String }))),
  format: optional(Format),
  stop: optional(Strings),
  max_tokens: optional(Schema.Number),
  effort: optional(Schema.String),
  parallel: optional(Schema.Boolean),
  extra: optional(perDialect(Fields)),
  bodies: optional(perDialect(Json))
})
export type Request = typeof Request.Type

const Usage = Schema.Struct({
  prompt: optional(Schema.Number),
  completion: optional(Schema.Number),
  cached: optional(Schema.Number),
  cache_write: optional(Schema.Number),
  cache_write_hour: optional(Schema.Number),
  reasoning: optional(Schema.Number),
  searches: optional(Schema.Number)
})
export type Usage = typeof Usage.Type

/** A call that a model makes; `tool` is the place of the tool in the request that the host received. */
const Call = Schema.Struct({
  id: optional(Schema.String),
  name: optional(Schema.String),
  tool: optional(Schema.Number),
  arguments: optional(Schema.String)
})
export type Call = typeof Call.Type

export const finishes = ["stop", "length", "tool_calls", "content_filter"] as const
const Finish = Schema.Literal(...finishes)

/** A host's reply on one wire, as it stands there. */
const RawReply = Schema.Struct({
  status: optional(Schema.Number),
  headers: optional(Schema.Record({ key: Schema.String, value: Schema.String })),
  body: optional(Schema.Unknown),
  events: optional(Schema.Array(Schema.Unknown)),
  /** Overrides of a neutral answer: the vendor's own finish reason and usage. */
  finish: optional(Schema.NullOr(Schema.String)),
  usage: optional(Schema.NullOr(Fields)),
  cut: optional(Schema.Boolean)
})
export type RawReply = typeof RawReply.Type

const Reply = Schema.Struct({
  text: optional(Schema.String),
  reasoning: optional(Schema.String),
  calls: optional(Schema.Array(Call)),
  finish: optional(Finish),
  usage: optional(Usage),
  refuse: optional(Schema.Literal("limit", "funds", "key", "request", "image", "moderation", "server", "missing")),
  /** Output, then the end of the connection. */
  cut: optional(Schema.Boolean),
  ...perWire(RawReply).fields
})
export type Reply = typeof Reply.Type
const Replies = Schema.Union(Reply, Schema.Array(Reply))

const Route = Schema.Struct({
  wire: optional(Schema.Literal(...wires, ...mediaWires)),
  options: optional(perWire(Fields)),
  /** Further fields of the route in the catalog. */
  route: optional(Fields),
  upstream: optional(Replies)
})
export type Route = typeof Route.Type

/** Matched as `Match.ts` says: a part of what is there. */
const Answer = Fields

const Sent = Schema.Struct({
  /** What the host read, in the words of no wire. */
  reads: optional(Fields),
  body: optional(Schema.Unknown),
  contains: optional(Strings),
  lacks: optional(Strings),
  /** The exact JSON of the value at a path, such as `tools.0.function.parameters`. */
  exact: optional(Schema.Record({ key: Schema.String, value: Schema.String })),
  /** Paths of which all have the same value. */
  same: optional(Schema.Array(Strings))
})
export type Sent = typeof Sent.Type

const On = Schema.Struct({
  dialects: optional(Schema.Array(Schema.Literal(...dialects, "api"))),
  wires: optional(Schema.Array(Schema.Literal(...wires, ...mediaWires))),
  streamed: optional(Schema.Boolean),
  native: optional(Schema.Boolean)
})
export type On = typeof On.Type

const Expected = Schema.Struct({
  on: optional(On),
  answer: optional(Answer),
  sent: optional(Sent),
  /** Passages in the text that the client gets. */
  answered: optional(Schema.Struct({ contains: optional(Strings), lacks: optional(Strings) })),
  /** Nano-USD, tokens at the prices of `Gateway.ts`, `hold` (all of it), or `free`. */
  charge: optional(Schema.Union(Schema.Literal("free", "hold"), Schema.Number, Usage)),
  cost: optional(Schema.Union(Schema.Number, Usage)),
  notes: optional(Strings),
  lacks_notes: optional(Strings),
  /** What the log says of each attempt, in order. */
  attempts: optional(Strings),
  /** How often each route's host is asked, in the order of the routes. */
  asked: optional(Schema.Array(Schema.Number)),
  log: optional(Fields)
})
export type Expected = typeof Expected.Type

const caseFields = {
  why: optional(Schema.String),
  /** The request goes to this endpoint, and from there over this adapter. */
  api: optional(Schema.Struct({ path: Schema.String, adapter: Schema.Literal(...mediaWires, ...wires) })),
  on: optional(On),
  /** Combinations that the case leaves out. */
  except: optional(Schema.Array(On)),
  options: optional(perWire(Fields)),
  /** Further fields of the model in the catalog. */
  model: optional(Fields),
  route: optional(Fields),
  request: optional(Request),
  upstream: optional(Replies),
  /** The routes after the first, for failovers. */
  failover: optional(Schema.Array(Route)),
  /** Rules of vendors that the host does not enforce: see `VendorRules.ts`. */
  waives: optional(Strings),
  /** Rules that only some hosts have. */
  demands: optional(Strings),
  expect: optional(Schema.Union(Expected, Schema.Array(Expected)))
}

const File = Schema.Struct({
  about: Schema.String,
  /** Public reports of the fault. */
  reports: optional(Strings),
  shared: optional(Schema.Unknown),
  base: optional(Schema.Struct(caseFields)),
  cases: Schema.Record({ key: Schema.String, value: Schema.NullOr(Schema.Struct(caseFields)) })
})

const CaseFields = Schema.Struct(caseFields)

export interface Case extends Schema.Schema.Type<typeof CaseFields> {
  readonly file: string
  readonly name: string
  /** The beginning of its models' names: letters, digits and dashes. */
  readonly id: string
  /** What is wrong with the file. */
  readonly invalid?: string
}

const decode = Schema.decodeUnknownSync(File, { onExcessProperty: "error" })

/** A file with a mistake fails alone. */
/** YAML has no escape for a lone surrogate. */
const withHalves = (text: string) =>
  text.replace(/<U\+(D[89A-F][0-9A-F]{2})>/g, (_, unit: string) => String.fromCharCode(Number.parseInt(unit, 16)))

const casesIn = (file: string): ReadonlyArray<Case> => {
  const stem = file.replace(/\.yaml$/, "")
  try {
    return readFile(file, stem)
  } catch (error) {
    return [{ file: stem, name: "the file has the format of README.md", id: stem, invalid: String(error) }]
  }
}

const readFile = (file: string, stem: string): ReadonlyArray<Case> => {
  const text = readFileSync(path.join(import.meta.dirname, file), "utf8")
  const { base = {}, cases } = decode(parse(withHalves(text), { merge: true }))
  return Object.entries(cases).map(([name, own], index) => ({
    ...base,
    ...own,
    request: { ...base.request, ...own?.request },
    file: stem,
    name,
    id: `${stem.toLowerCase()}-${index}`
  }))
}

/** All of them, or those whose file begins with what `TRAFFIC` says, such as `B1` or `B1,C`. */
export const readCases = (): ReadonlyArray<Case> => {
  const wanted = (process.env["TRAFFIC"] ?? "").split(",")
  return readdirSync(import.meta.dirname)
    .filter((file) => file.endsWith(".yaml") && wanted.some((start) => file.startsWith(start)))
    .toSorted()
    .flatMap(casesIn)
}

export const list = <A>(one: A | ReadonlyArray<A> | undefined): ReadonlyArray<A> =>
  one === undefined ? [] : isList(one) ? one : [one]
const isList = <A>(one: A | ReadonlyArray<A>): one is ReadonlyArray<A> => Array.isArray(one)
