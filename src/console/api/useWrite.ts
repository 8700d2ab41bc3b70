import { useCallback, useRef, useState } from "preact/hooks"
import type { ApiError } from "./ApiError.ts"
import { type Method, makeIdempotencyKey, write } from "./Client.ts"
import { asApiError } from "./useResource.ts"

interface Write<A> {
  readonly isBusy: boolean
  readonly error: ApiError | undefined
  /** Undefined where it failed; a repeat of what got no answer has the same idempotency key. */
  readonly send: (method: Method, path: string, body?: unknown) => Promise<{ readonly answer: A } | undefined>
}

export const useWrite = <A>(): Write<A> => {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError>()
  const unanswered = useRef<{ readonly request: string; readonly key: string }>(undefined)

  const send = useCallback(async (method: Method, path: string, body?: unknown) => {
    const request = JSON.stringify([method, path, body])
    const key = unanswered.current?.request === request ? unanswered.current.key : makeIdempotencyKey()
    unanswered.current = { request, key }
    setBusy(true)
    setError(undefined)
    try {
      const answer = await write<A>(method, path, body, key)
      unanswered.current = undefined
      return { answer }
    } catch (failure) {
      const refusal = asApiError(failure)
      if (refusal.status >= 400 && refusal.status < 500) unanswered.current = undefined
      setError(refusal)
      return undefined
    } finally {
      setBusy(false)
    }
  }, [])

  return { isBusy, error, send }
}
