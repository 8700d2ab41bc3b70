// By hand: the official package would add 10 MB for three calls, and repeat requests beyond our own deadlines.

import { Data, Effect, Either, ParseResult, Predicate, Redacted, Schema } from "effect"
import { type Dispatcher, request as send } from "undici"
import { readAnswerBody } from "../node/AnswerBody.ts"
import { makeAgent } from "../node/Outgoing.ts"
import { PaymentProviderFailed } from "../services/payments/PaymentProvider.ts"
import { stripeRetries } from "../services/runtime/Schedules.ts"
import { errorCode } from "../services/runtime/System.ts"

export interface ClientOptions {
  readonly secretKey: Redacted.Redacted
  /** Without a trailing slash. */
  readonly apiBase: string
}

/** A field of a form, or fields below its name. */
type FormValue = string | number | ReadonlyArray<FormValue> | { readonly [name: string]: FormValue }

const pairsOf = (name: string, value: FormValue): ReadonlyArray<[string, string]> => {
  if (typeof value === "string" || typeof value === "number") return [[name, String(value)]]
  return Object.entries(value).flatMap(([key, inner]) => pairsOf(`${name}[${key}]`, inner))
}

/** Names in brackets, as `line_items[0][quantity]=1`. */
const encodeForm = (fields: Readonly<Record<string, FormValue>>): string =>
  new URLSearchParams(Object.entries(fields).flatMap(([name, value]) => pairsOf(name, value))).toString()

/** The version whose shapes are read here, whatever the account's own is. */
const version = "2025-03-31.basil"

const tryMillis = 10_000
const connectMillis = 5_000
const largestAnswer = 4 * 1024 * 1024
const pageSize = 100
/** Of a listing; more in one of a few days is not what this is for. */
const maxPages = 200

class CallFailed extends Data.TaggedError("CallFailed")<{
  readonly detail: string
  readonly status: number | undefined
  readonly mayRetry: boolean
}> {}

export type Query = Readonly<Record<string, FormValue>>

interface Call {
  readonly path: string
  readonly query?: Query
  /** Makes the call a POST, which is carried out once under its key. */
  readonly post?: { readonly form: Readonly<Record<string, FormValue>>; readonly idempotencyKey: string }
}

const ErrorBody = Schema.parseJson(
  Schema.Struct({
    error: Schema.Struct({ type: Schema.optional(Schema.String), code: Schema.optional(Schema.String) })
  })
)
const decodeError = Schema.decodeUnknownOption(ErrorBody)

const textOf = async (body: Dispatcher.ResponseData["body"]): Promise<string> => {
  const bytes = await readAnswerBody(body, largestAnswer)
  if (bytes === undefined) throw new Error("the answer is too large")
  return bytes.toString("utf8")
}

/** Its messages are left out: they may quote a key. */
const explain = (status: number, text: string, requestId: unknown): string => {
  const { error } = decodeError(text).pipe((found) => (found._tag === "Some" ? found.value : { error: undefined }))
  const words = [error?.type, error?.code].filter((word) => word !== undefined && /^\w{1,60}$/.test(word))
  const id = typeof requestId === "string" && /^\w{1,60}$/.test(requestId) ? [requestId] : []
  return [`status ${status}`, ...words, ...id].join(", ")
}

/** Warnings for parts of an object that the key may not read, by the part's name. */
const unreadableParts: Readonly<Record<string, string>> = {
  payment_intent:
    "Stripe's key may not read Payment Intents, so that only an event reports a failed bank debit. If the event is lost, the payment stays open. Let the key read Payment Intents.",
  balance_transaction:
    "Stripe's key may not read Balance Transactions, so that you have to enter the USD amount of refunds in another currency. Let the key read Balance Transactions."
}

const partOf = (expand: FormValue): string => String(Array.isArray(expand) ? expand[0] : expand).replace(/^data\./, "")

export interface Listing<A> {
  readonly items: ReadonlyArray<A>
  /** The ids of objects that could not be decoded, and the field at fault; without values. */
  readonly unreadable: ReadonlyArray<string>
}

const Page = Schema.Struct({ data: Schema.Array(Schema.Unknown), has_more: Schema.Boolean })

const idOf = (object: unknown): string | undefined =>
  Predicate.hasProperty(object, "id") && typeof object.id === "string" && /^\w{1,255}$/.test(object.id)
    ? object.id
    : undefined

const placeOf = (error: ParseResult.ParseError): string => {
  const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
  return issue === undefined || issue.path.length === 0 ? "" : ` at \`${issue.path.join(".")}\``
}

const describeUnreadable = (object: unknown, error: ParseResult.ParseError): string => {
  return `${idOf(object) ?? "an object without an id"}${placeOf(error)}`
}

export const makeClient = ({ apiBase, secretKey }: ClientOptions) =>
  Effect.gen(function* () {
    const agent = yield* makeAgent({ connectTimeoutMillis: connectMillis })

    const tryOnce = ({ path, post, query = {} }: Call) =>
      Effect.tryPromise({
        try: async (interrupted) => {
          const search = encodeForm(query)
          const answer = await send(`${apiBase}${path}${search === "" ? "" : `?${search}`}`, {
            dispatcher: agent,
            method: post === undefined ? "GET" : "POST",
            signal: AbortSignal.any([interrupted, AbortSignal.timeout(tryMillis)]),
            headers: {
              authorization: `Bearer ${Redacted.value(secretKey)}`,
              "stripe-version": version,
              ...(post && {
                "content-type": "application/x-www-form-urlencoded",
                "idempotency-key": post.idempotencyKey
              })
            },
            body: post === undefined ? null : encodeForm(post.form)
          })
          return { status: answer.statusCode, headers: answer.headers, text: await textOf(answer.body) }
        },
        catch: (error) => new CallFailed({ detail: errorCode(error) ?? "no answer", status: undefined, mayRetry: true })
      }).pipe(
        Effect.filterOrFail(
          ({ status }) => status >= 200 && status < 300,
          ({ headers, status, text }) => {
            const said = headers["stripe-should-retry"]
            const isPassing = status === 409 || status === 429 || status >= 500
            const mayRetry = said === undefined ? isPassing : said === "true"
            return new CallFailed({ detail: explain(status, text, headers["request-id"]), status, mayRetry })
          }
        )
      )

    const ask = <A, I>(answer: Schema.Schema<A, I>, given: Call): Effect.Effect<A, CallFailed> => {
      const decode = Schema.decodeUnknown(Schema.parseJson(answer))
      return tryOnce(given).pipe(
        Effect.retry({ schedule: stripeRetries, while: ({ mayRetry }) => mayRetry }),
        Effect.flatMap(({ text }) =>
          Effect.mapError(decode(text), (error) => {
            const detail = `an unexpected answer${placeOf(error)}`
            return new CallFailed({ detail, status: undefined, mayRetry: false })
          })
        )
      )
    }

    const warnings = new Set<string>()
    const warnOnce = (part: string) =>
      Effect.suspend(() => {
        if (warnings.has(part)) return Effect.void
        warnings.add(part)
        return Effect.logWarning(unreadableParts[part] ?? `Stripe's key may not read ${part}.`)
      })

    /** A restricted key may read an object and not what belongs to it: the object is better than nothing. */
    const call = <A, I>(answer: Schema.Schema<A, I>, given: Call): Effect.Effect<A, CallFailed> => {
      const { expand, ...query } = given.query ?? {}
      return Effect.catchIf(
        ask(answer, given),
        ({ status }) => status === 403 && expand !== undefined,
        () => Effect.zipLeft(ask(answer, { ...given, query }), warnOnce(partOf(expand ?? "")))
      )
    }

    const orExplain = <A>(called: Effect.Effect<A, CallFailed>): Effect.Effect<A, PaymentProviderFailed> =>
      Effect.mapError(
        called,
        ({ detail }) => new PaymentProviderFailed({ message: `Stripe could not be asked: ${detail}.` })
      )

    const listAll = Effect.fnUntraced(function* (path: string, query: Query) {
      const objects: Array<unknown> = []
      let after: { readonly starting_after?: string } = {}
      for (let pages = 0; pages < maxPages; pages++) {
        const { data, has_more } = yield* call(Page, { path, query: { ...query, limit: pageSize, ...after } })
        objects.push(...data)
        if (!has_more || data.length === 0) return objects
        const last = data.map(idOf).findLast((id) => id !== undefined)
        if (last === undefined) {
          return yield* new CallFailed({ detail: "a page without an id", status: undefined, mayRetry: false })
        }
        after = { starting_after: last }
      }
      return yield* new CallFailed({ detail: `more than ${maxPages} pages`, status: undefined, mayRetry: false })
    })

    /** Returns all pages of a list, newest first. An object that cannot be decoded does not fail the others. */
    const list = <A, I>(item: Schema.Schema<A, I>, path: string, query: Query) => {
      const decode = Schema.decodeUnknownEither(item)
      return orExplain(
        Effect.map(listAll(path, query), (objects): Listing<A> => {
          const items: Array<A> = []
          const unreadable = new Set<string>()
          for (const object of objects) {
            const decoded = decode(object)
            if (Either.isRight(decoded)) items.push(decoded.right)
            else unreadable.add(describeUnreadable(object, decoded.left))
          }
          return { items, unreadable: [...unreadable] }
        })
      )
    }

    return {
      list,
      call: <A, I>(answer: Schema.Schema<A, I>, given: Call) => orExplain(call(answer, given)),
      /** Undefined where there is no such object. */
      find: <A, I>(answer: Schema.Schema<A, I>, path: string, query: Query) =>
        orExplain(
          Effect.catchIf(
            call(answer, { path, query }),
            ({ status }) => status === 404,
            () => Effect.succeed(undefined)
          )
        )
    }
  })
