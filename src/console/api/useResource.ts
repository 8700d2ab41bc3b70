import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { ApiError, unreachableError } from "./ApiError.ts"
import { addressOf, get, type QueryValues } from "./Client.ts"

/** Calls while the page is visible, and at once when it comes back after a longer time. */
export const usePolling = (seconds: number | undefined, callback: () => void): void => {
  const latest = useRef(callback)
  latest.current = callback
  useEffect(() => {
    if (seconds === undefined) return
    let calledAt = performance.now()
    const beat = () => {
      if (document.hidden || performance.now() - calledAt < seconds * 1000) return
      calledAt = performance.now()
      latest.current()
    }
    const timer = setInterval(beat, 1000)
    document.addEventListener("visibilitychange", beat)
    return () => {
      clearInterval(timer)
      document.removeEventListener("visibilitychange", beat)
    }
  }, [seconds])
}

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

export interface PageAnswer<Row> {
  readonly data: ReadonlyArray<Row>
  readonly has_more: boolean
  readonly next: string | null
}

export interface Pages<Row, Answer extends PageAnswer<Row> = PageAnswer<Row>> {
  readonly rows: ReadonlyArray<Row>
  /** The first page, with what it says beside its rows. */
  readonly first: Answer | undefined
  readonly hasMore: boolean
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

interface WantedPage {
  readonly address: string
  readonly after: string | null
  readonly turn: number
}

/** The pages of a list so far; a change of the query starts anew, and shows the old rows until then. */
export const usePages = <Row, Answer extends PageAnswer<Row> = PageAnswer<Row>>(
  path: string,
  query: QueryValues = {},
  limit = 50
): Pages<Row, Answer> => {
  const address = addressOf(path, { ...query, limit })
  const [wanted, setWanted] = useState<WantedPage>({ address, after: null, turn: 0 })
  const [state, setState] = useState<PagesState<Answer>>({ pages: [], error: undefined, isLoading: true })
  const after = wanted.address === address ? wanted.after : null

  useEffect(() => {
    const controller = new AbortController()
    setState((was) => ({ ...was, isLoading: true }))
    get<Answer>(path, { ...query, limit, after }, controller.signal).then(
      (page) =>
        setState((was) => ({
          pages: after === null ? [page] : [...was.pages, page],
          error: undefined,
          isLoading: false
        })),
      (error: unknown) => {
        if (!controller.signal.aborted) setState((was) => ({ ...was, error: asApiError(error), isLoading: false }))
      }
    )
    return () => controller.abort()
  }, [address, after, wanted.turn])

  const next = state.pages.at(-1)?.next ?? null
  return {
    rows: state.pages.flatMap(({ data }) => data),
    first: state.pages[0],
    hasMore: next !== null,
    error: state.error,
    isLoading: state.isLoading,
    loadMore: useCallback(() => setWanted(({ turn }) => ({ address, after: next, turn: turn + 1 })), [address, next]),
    refresh: useCallback(() => setWanted(({ turn }) => ({ address, after: null, turn: turn + 1 })), [address])
  }
}
