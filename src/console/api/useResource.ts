import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { addressOf, get, type Method, makeIdempotencyKey, type QueryValues, write } from "./ApiClient.ts"
import { ApiError, unreachableError } from "./ApiError.ts"

/** Calls back at an interval while the page is visible, and when the page becomes visible again after a longer time. */
export const usePolling = (seconds: number | undefined, callback: () => void): void => {
  const latest = useRef(callback)
  latest.current = callback
  useEffect(() => {
    if (seconds === undefined) return
    let calledAt = performance.now()
    const callIfDue = () => {
      if (document.hidden || performance.now() - calledAt < seconds * 1000) return
      calledAt = performance.now()
      latest.current()
    }
    const timer = setInterval(callIfDue, 1000)
    document.addEventListener("visibilitychange", callIfDue)
    return () => {
      clearInterval(timer)
      document.removeEventListener("visibilitychange", callIfDue)
    }
  }, [seconds])
}

export interface Resource<A> {
  /** The previous data stays during a refresh. */
  readonly data: A | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  readonly refresh: () => void
}

/** The response of a list without pages. */
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

/** Loads nothing if the path is undefined, and never returns data of another path. */
export const useResource = <A>(
  path: string | undefined,
  { everySeconds, query = {} }: { readonly query?: QueryValues; readonly everySeconds?: number } = {}
): Resource<A> => {
  const [refreshCount, setRefreshCount] = useState(0)
  const [state, setState] = useState<State<A>>({ path, data: undefined, error: undefined, isLoading: true })
  const isLoading = useRef(false)
  const address = path === undefined ? undefined : addressOf(path, query)

  useEffect(() => {
    if (path === undefined) return
    const controller = new AbortController()
    isLoading.current = true
    setState((previous) => ({
      ...(previous.path === path ? previous : { data: undefined, error: undefined }),
      path,
      isLoading: true
    }))
    const settle = (result: Partial<State<A>>) => {
      if (controller.signal.aborted) return
      isLoading.current = false
      setState((previous) => ({ ...previous, ...result, isLoading: false }))
    }
    get<A>(path, query, controller.signal).then(
      (data) => settle({ data, error: undefined }),
      (error: unknown) => settle({ error: asApiError(error) })
    )
    return () => controller.abort()
  }, [address, refreshCount])

  const refresh = useCallback(() => setRefreshCount((count) => count + 1), [])
  usePolling(everySeconds, () => {
    if (!isLoading.current) refresh()
  })
  const { data, error } = state.path === path ? state : { data: undefined, error: undefined }
  return { data, error, isLoading: state.path !== path || state.isLoading, refresh }
}

export interface PageAnswer<Row> {
  readonly data: ReadonlyArray<Row>
  readonly has_more: boolean
  readonly next: string | null
  /** Whether the search paused at its row limit. `next` continues it. */
  readonly cut_short?: boolean
}

export interface Pages<Row, Answer extends PageAnswer<Row> = PageAnswer<Row>> {
  readonly rows: ReadonlyArray<Row>
  /** The first page, which may have totals beside its rows. */
  readonly first: Answer | undefined
  readonly hasMore: boolean
  /** Whether the search of the last page paused at its row limit. */
  readonly isCutShort: boolean
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  readonly loadMore: () => void
  readonly refresh: () => void
}

interface PagesState<Answer> {
  readonly pages: ReadonlyArray<Answer>
  readonly error: ApiError | undefined
  readonly isLoading: boolean
}

interface PageRequest {
  readonly address: string
  readonly after: string | null
  /** A new number repeats the request of the same page. */
  readonly requestNumber: number
}

/** Returns the pages loaded so far. After a change of the query the old rows stay until the first page has loaded. */
export const usePages = <Row, Answer extends PageAnswer<Row> = PageAnswer<Row>>(
  path: string,
  query: QueryValues = {},
  limit = 50
): Pages<Row, Answer> => {
  const address = addressOf(path, { ...query, limit })
  const [request, setRequest] = useState<PageRequest>({ address, after: null, requestNumber: 0 })
  const [state, setState] = useState<PagesState<Answer>>({ pages: [], error: undefined, isLoading: true })
  const after = request.address === address ? request.after : null

  useEffect(() => {
    const controller = new AbortController()
    setState((previous) => ({ ...previous, isLoading: true }))
    get<Answer>(path, { ...query, limit, after }, controller.signal).then(
      (page) =>
        setState((previous) => ({
          pages: after === null ? [page] : [...previous.pages, page],
          error: undefined,
          isLoading: false
        })),
      (error: unknown) => {
        if (!controller.signal.aborted)
          setState((previous) => ({ ...previous, error: asApiError(error), isLoading: false }))
      }
    )
    return () => controller.abort()
  }, [address, after, request.requestNumber])

  const last = state.pages.at(-1)
  const next = last?.next ?? null
  return {
    rows: state.pages.flatMap(({ data }) => data),
    first: state.pages[0],
    hasMore: next !== null,
    isCutShort: last?.cut_short === true,
    error: state.error,
    isLoading: state.isLoading,
    loadMore: useCallback(
      () => setRequest(({ requestNumber }) => ({ address, after: next, requestNumber: requestNumber + 1 })),
      [address, next]
    ),
    refresh: useCallback(
      () => setRequest(({ requestNumber }) => ({ address, after: null, requestNumber: requestNumber + 1 })),
      [address]
    )
  }
}

interface Write<A> {
  readonly isBusy: boolean
  readonly error: ApiError | undefined
  /** Returns undefined on failure. If no response arrived, sending the same request again reuses the idempotency key. */
  readonly send: (method: Method, path: string, body?: unknown) => Promise<{ readonly answer: A } | undefined>
}

export const useWrite = <A>(): Write<A> => {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError>()
  const unansweredRequest = useRef<{ readonly request: string; readonly key: string }>(undefined)

  const send = useCallback(async (method: Method, path: string, body?: unknown) => {
    const request = JSON.stringify([method, path, body])
    const key = unansweredRequest.current?.request === request ? unansweredRequest.current.key : makeIdempotencyKey()
    unansweredRequest.current = { request, key }
    setBusy(true)
    setError(undefined)
    try {
      const answer = await write<A>(method, path, body, key)
      unansweredRequest.current = undefined
      return { answer }
    } catch (cause) {
      const apiError = asApiError(cause)
      if (apiError.status >= 400 && apiError.status < 500) unansweredRequest.current = undefined
      setError(apiError)
      return undefined
    } finally {
      setBusy(false)
    }
  }, [])

  return { isBusy, error, send }
}
