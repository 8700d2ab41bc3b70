import { searchOf } from "../Route.ts"
import { makeStore } from "../Store.ts"
import { ApiError, errorOf, unreachableError } from "./ApiError.ts"

export type Method = "POST" | "PATCH" | "DELETE"
export type QueryValues = Parameters<typeof searchOf>[0]

/** The number of responses with status 401. A change signs the user out. */
export const unauthorizedResponses = makeStore(0)

/** The number of responses that refuse the role. After a change, the session is read again. */
export const refusedRoles = makeStore(0)

/** Returns an address relative to the page, because a proxy may serve the page and the API under a prefix. */
export const addressOf = (path: string, query: QueryValues = {}): string => `admin/v1${path}${searchOf(query)}`

const call = async (address: string, options: RequestInit): Promise<Response> => {
  const response = await fetch(address, { ...options, credentials: "same-origin" }).catch((error: unknown) => {
    throw options.signal?.aborted ? error : unreachableError()
  })
  if (response.ok) return response
  if (response.status === 401) unauthorizedResponses.set(unauthorizedResponses.get() + 1)
  const error = await errorOf(response)
  if (error.code === "insufficient_role") refusedRoles.set(refusedRoles.get() + 1)
  throw error
}

const decode = async (response: Response) => (response.status === 204 ? undefined : response.json())

export const get = async <A>(path: string, query: QueryValues, signal: AbortSignal): Promise<A> =>
  decode(await call(addressOf(path, query), { signal }))

/** Returns 128 random bits as hex: `crypto.randomUUID` exists on secure pages only. */
export const makeIdempotencyKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")

const retryDelaysMillis = [500, 2000]
const retriedStatuses = new Set([0, 502, 503, 504])

/** Retries with the same idempotency key if the request may not have arrived: the gateway applies the change once. */
export const write = async <A>(method: Method, path: string, body: unknown, idempotencyKey: string): Promise<A> => {
  const headers = { "content-type": "application/json", "idempotency-key": idempotencyKey }
  const options = { method, headers, body: body === undefined ? null : JSON.stringify(body) }
  for (const delay of [...retryDelaysMillis, undefined]) {
    try {
      return await decode(await call(addressOf(path), options))
    } catch (error) {
      if (delay === undefined || !(error instanceof ApiError && retriedStatuses.has(error.status))) throw error
      await new Promise((resolve) => setTimeout(resolve, delay))
    }
  }
  throw unreachableError()
}

/** Calls `onLine` with each line that is not empty as it arrives. Fails if the connection breaks. */
export const forEachLine = async ({ body }: Response, onLine: (line: string) => void): Promise<void> => {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    const lines = (rest + read.value).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) if (line !== "") onLine(line)
  }
}

/** Calls `onLine` with each line of JSON as it arrives. Fails if the connection breaks. */
export const readLines = async <A>(path: string, onLine: (line: A) => void, signal: AbortSignal): Promise<void> =>
  forEachLine(await call(addressOf(path), { method: "POST", signal }), (line) => onLine(JSON.parse(line)))
