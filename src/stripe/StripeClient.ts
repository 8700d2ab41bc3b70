// Not the official package, which adds 10 MB for three calls and retries beyond our deadlines.

import { Data, Effect, Either, ParseResult, Predicate, Redacted, Schema } from "effect"
import { type Dispatcher, request as send } from "undici"
import { abortAfter, makeAgent, readAnswerBody } from "../node/Outgoing.ts"
import { PaymentProviderFailed } from "../services/payments/PaymentProvider.ts"
import { stripeRetries } from "../services/runtime/Schedules.ts"
import { errorCode } from "../services/runtime/System.ts"

export interface ClientOptions {
  readonly secretKey: Redacted.Redacted
  /** The API's base URL without a trailing slash. */
  readonly apiBase: string
}

/** The value of a form field, or the fields nested under its name. */
type FormValue = string | number | ReadonlyArray<FormValue> | { readonly [name: string]: FormValue }

const toPairs = (name: string, value: FormValue): ReadonlyArray<[string, string]> => {
  if (typeof value === "string" || typeof value === "number") return [[name, String(value)]]
  return Object.entries(value).flatMap(([key, inner]) => toPairs(`${name}[${key}]`, inner))
}

/** Encodes nested names in brackets, as in `line_items[0][quantity]=1`. */
const encodeForm = (fields: Readonly<Record<string, FormValue>>): string =>
  new URLSearchParams(Object.entries(fields).flatMap(([name, value]) => toPairs(name, value))).toString()

/** The API version of our schemas, sent with each call. It overrides the account's default version. */
const apiVersion = "2025-03-31.basil"

const timeoutMillis = 10_000
const connectMillis = 5_000
const maxAnswerBytes = 4 * 1024 * 1024
const pageSize = 100
/** The maximum number of pages of one list. Far more than the payments of a few days. */
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
  /** The form and the idempotency key of a POST. Without them, the call is a GET. */
  readonly post?: { readonly form: Readonly<Record<string, FormValue>>; readonly idempotencyKey: string }
}

const ErrorBody = Schema.parseJson(
  Schema.Struct({
    error: Schema.Struct({ type: Schema.optional(Schema.String), code: Schema.optional(Schema.String) })
  })
)
const decodeError = Schema.decodeUnknownOption(ErrorBody)

const readText = async (body: Dispatcher.ResponseData["body"]): Promise<string> => {
  const bytes = await readAnswerBody(body, maxAnswerBytes)
  if (bytes === undefined) throw new Error("the answer is too large")
  return bytes.toString("utf8")
}

/** Describes an error response. Omits its message, which may quote a key. */
const explainError = (status: number, text: string, requestId: unknown): string => {
  const { error } = decodeError(text).pipe((body) => (body._tag === "Some" ? body.value : { error: undefined }))
  const words = [error?.type, error?.code].filter((word) => word !== undefined && /^\w{1,60}$/.test(word))
  const id = typeof requestId === "string" && /^\w{1,60}$/.test(requestId) ? [requestId] : []
  return [`status ${status}`, ...words, ...id].join(", ")
}

/** The warning for each expanded field that a restricted key may not be permitted to read. */
const permissionWarnings: Readonly<Record<string, string>> = {
  payment_intent:
    "STRIPE_SECRET_KEY may not read Payment Intents. If the event of a failed bank debit is lost, the payment stays open. Grant the key read access to Payment Intents.",
  balance_transaction:
    "STRIPE_SECRET_KEY may not read Balance Transactions. You must enter the USD amount of refunds in another currency. Grant the key read access to Balance Transactions."
}

const expandedFieldOf = (expand: FormValue): string =>
  String(Array.isArray(expand) ? expand[0] : expand).replace(/^data\./, "")

export interface Listing<A> {
  readonly items: ReadonlyArray<A>
  /** For each object that could not be decoded: its id and the invalid field, without values. */
  readonly unreadable: ReadonlyArray<string>
}

const Page = Schema.Struct({ data: Schema.Array(Schema.Unknown), has_more: Schema.Boolean })

const idOf = (object: unknown): string | undefined =>
  Predicate.hasProperty(object, "id") && typeof object.id === "string" && /^\w{1,255}$/.test(object.id)
    ? object.id
    : undefined

const fieldOf = (error: ParseResult.ParseError): string => {
  const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
  return issue === undefined || issue.path.length === 0 ? "" : ` at \`${issue.path.join(".")}\``
}

const describeUnreadable = (object: unknown, error: ParseResult.ParseError): string => {
  return `${idOf(object) ?? "an object without an id"}${fieldOf(error)}`
}

export const makeClient = ({ apiBase, secretKey }: ClientOptions) =>
  Effect.gen(function* () {
    const agent = yield* makeAgent({ connectTimeoutMillis: connectMillis })

    const requestOnce = ({ path, post, query = {} }: Call) =>
      Effect.tryPromise({
        try: (interrupted) =>
          abortAfter(timeoutMillis, interrupted, async (signal) => {
            const search = encodeForm(query)
            const answer = await send(`${apiBase}${path}${search === "" ? "" : `?${search}`}`, {
              dispatcher: agent,
              method: post === undefined ? "GET" : "POST",
              signal,
              headers: {
                authorization: `Bearer ${Redacted.value(secretKey)}`,
                "stripe-version": apiVersion,
                ...(post && {
                  "content-type": "application/x-www-form-urlencoded",
                  "idempotency-key": post.idempotencyKey
                })
              },
              body: post === undefined ? null : encodeForm(post.form)
            })
            return { status: answer.statusCode, headers: answer.headers, text: await readText(answer.body) }
          }),
        catch: (error) => new CallFailed({ detail: errorCode(error) ?? "no answer", status: undefined, mayRetry: true })
      }).pipe(
        Effect.filterOrFail(
          ({ status }) => status >= 200 && status < 300,
          ({ headers, status, text }) => {
            const shouldRetry = headers["stripe-should-retry"]
            const isRetryable = status === 409 || status === 429 || status >= 500
            const mayRetry = shouldRetry === undefined ? isRetryable : shouldRetry === "true"
            return new CallFailed({ detail: explainError(status, text, headers["request-id"]), status, mayRetry })
          }
        )
      )

    const requestDecoded = <A, I>(answer: Schema.Schema<A, I>, request: Call): Effect.Effect<A, CallFailed> => {
      const decode = Schema.decodeUnknown(Schema.parseJson(answer))
      return requestOnce(request).pipe(
        Effect.retry({ schedule: stripeRetries, while: ({ mayRetry }) => mayRetry }),
        Effect.flatMap(({ text }) =>
          Effect.mapError(decode(text), (error) => {
            const detail = `an unexpected answer${fieldOf(error)}`
            return new CallFailed({ detail, status: undefined, mayRetry: false })
          })
        )
      )
    }

    const warned = new Set<string>()
    const warnOnce = (field: string) =>
      Effect.suspend(() => {
        if (warned.has(field)) return Effect.void
        warned.add(field)
        return Effect.logWarning(permissionWarnings[field] ?? `STRIPE_SECRET_KEY may not read ${field}.`)
      })

    /** If a restricted key may not read an expanded field, warns once and repeats the call without that field. */
    const call = <A, I>(answer: Schema.Schema<A, I>, request: Call): Effect.Effect<A, CallFailed> => {
      const { expand, ...query } = request.query ?? {}
      return Effect.catchIf(
        requestDecoded(answer, request),
        ({ status }) => status === 403 && expand !== undefined,
        () => Effect.zipLeft(requestDecoded(answer, { ...request, query }), warnOnce(expandedFieldOf(expand ?? "")))
      )
    }

    const withFailure = <A>(result: Effect.Effect<A, CallFailed>): Effect.Effect<A, PaymentProviderFailed> =>
      Effect.mapError(
        result,
        ({ detail }) => new PaymentProviderFailed({ message: `The request to Stripe failed: ${detail}.` })
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

    /** Returns all pages of a list, newest first. Objects that cannot be decoded are reported in `unreadable`. */
    const list = <A, I>(item: Schema.Schema<A, I>, path: string, query: Query) => {
      const decode = Schema.decodeUnknownEither(item)
      return withFailure(
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
      call: <A, I>(answer: Schema.Schema<A, I>, request: Call) => withFailure(call(answer, request)),
      /** Returns undefined if the object does not exist. */
      find: <A, I>(answer: Schema.Schema<A, I>, path: string, query: Query) =>
        withFailure(
          Effect.catchIf(
            call(answer, { path, query }),
            ({ status }) => status === 404,
            () => Effect.succeed(undefined)
          )
        )
    }
  })
