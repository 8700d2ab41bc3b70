import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { ApiError, unreachableError } from "./ApiError.ts"
import { addressOf, get, type QueryValues } from "./Client.ts"
import { usePolling } from "./usePolling.ts"

export interface Resource<A> {
  /** Stays while it is loaded anew. */
  readonly data: A | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  readonly refresh: () => void
}

/** What a list that comes whole answers. */
export interface Listed<Record extends { readonly Encoded: unknown }> {
  readonly data: ReadonlyArray<Record["Encoded"]>
}

interface State<A> {
  readonly path: string | undefined
  readonly data: A | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
}

export const asApiError = (error: unknown): ApiError => (error instanceof ApiError ? error : unreachableError())

/** Nothing is loaded where the path is undefined; data of another path is never shown. */
export const useResource = <A>(
  path: string | undefined,
  { everySeconds, query = {} }: { readonly query?: QueryValues; readonly everySeconds?: number } = {}
): Resource<A> => {
  const [turn, setTurn] = useState(0)
  const [state, setState] = useState<State<A>>({ path, data: undefined, error: undefined, isLoading: true })
  const isLoading = useRef(false)
  const address = path === undefined ? undefined : addressOf(path, query)

  useEffect(() => {
    if (path === undefined) return
    const controller = new AbortController()
    isLoading.current = true
    setState((was) => ({ ...(was.path === path ? was : { data: undefined, error: undefined }), path, isLoading: true }))
    const settle = (result: Partial<State<A>>) => {
      if (controller.signal.aborted) return
      isLoading.current = false
      setState((was) => ({ ...was, ...result, isLoading: false }))
    }
    get<A>(path, query, controller.signal).then(
      (data) => settle({ data, error: undefined }),
      (error: unknown) => settle({ error: asApiError(error) })
    )
    return () => controller.abort()
  }, [address, turn])

  const refresh = useCallback(() => setTurn((count) => count + 1), [])
  usePolling(everySeconds, () => {
    if (!isLoading.current) refresh()
  })
  const { data, error } = state.path === path ? state : { data: undefined, error: undefined }
  return { data, error, isLoading: state.path !== path || state.isLoading, refresh }
}
