import { searchOf } from "../Route.ts"
import { makeStore } from "../Store.ts"
import { ApiError, errorOf, unreachableError } from "./ApiError.ts"

export type Method = "POST" | "PATCH" | "DELETE"
export type QueryValues = Parameters<typeof searchOf>[0]

/** Counts the answers that ask for a sign-in. */
export const refusals = makeStore(0)

/** Beside the page, wherever a proxy has put it. */
export const addressOf = (path: string, query: QueryValues = {}): string => `admin/v1${path}${searchOf(query)}`

const call = async (address: string, options: RequestInit): Promise<Response> => {
  const response = await fetch(address, { ...options, credentials: "same-origin" }).catch((error: unknown) => {
    throw options.signal?.aborted ? error : unreachableError()
  })
  if (response.ok) return response
  if (response.status === 401) refusals.set(refusals.get() + 1)
  throw await errorOf(response)
}

const decode = async (response: Response) => (response.status === 204 ? undefined : response.json())

export const get = async <A>(path: string, query: QueryValues, signal: AbortSignal): Promise<A> =>
  decode(await call(addressOf(path, query), { signal }))

/** `crypto.randomUUID` exists on secure pages only. */
export const makeIdempotencyKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")

const retryDelaysMillis = [500, 2000]
const unanswered = new Set([0, 502, 503, 504])

/** Repeats what may not have arrived with the same key, under which the gateway does it once. */
export const write = async <A>(method: Method, path: string, body: unknown, idempotencyKey: string): Promise<A> => {
  const headers = { "content-type": "application/json", "idempotency-key": idempotencyKey }
  const options = { method, headers, body: body === undefined ? null : JSON.stringify(body) }
  for (const delay of [...retryDelaysMillis, undefined]) {
    try {
      return await decode(await call(addressOf(path), options))
    } catch (error) {
      if (delay === undefined || !(error instanceof ApiError && unanswered.has(error.status))) throw error
      await new Promise((resolve) => setTimeout(resolve, delay))
    }
  }
  throw unreachableError()
}

/** Calls with each line of JSON as it comes; fails where the answer breaks off. */
export const readLines = async <A>(path: string, onLine: (line: A) => void, signal: AbortSignal): Promise<void> => {
  const { body } = await call(addressOf(path), { method: "POST", signal })
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    const lines = (rest + read.value).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) if (line !== "") onLine(JSON.parse(line))
  }
}
