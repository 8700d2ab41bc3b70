import { useCallback, useEffect, useState } from "preact/hooks"
import type { ApiError } from "./ApiError.ts"
import { addressOf, get, type QueryValues } from "./Client.ts"
import { asApiError } from "./useResource.ts"

export interface Page<Row> {
  readonly data: ReadonlyArray<Row>
  readonly has_more: boolean
  readonly next: string | null
}

export interface Pages<Row, Answer extends Page<Row>> {
  readonly rows: ReadonlyArray<Row>
  /** The first page, with what it says beside its rows. */
  readonly first: Answer | undefined
  readonly hasMore: boolean
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  readonly loadMore: () => void
  readonly refresh: () => void
}

interface State<Answer> {
  readonly pages: ReadonlyArray<Answer>
  readonly error: ApiError | undefined
  readonly isLoading: boolean
}

interface Wanted {
  readonly address: string
  readonly after: string | null
  readonly turn: number
}

/** The pages of a list so far; a change of the query starts anew, and shows the old rows until then. */
export const usePages = <Row, Answer extends Page<Row> = Page<Row>>(
  path: string,
  query: QueryValues = {},
  limit = 50
): Pages<Row, Answer> => {
  const address = addressOf(path, { ...query, limit })
  const [wanted, setWanted] = useState<Wanted>({ address, after: null, turn: 0 })
  const [state, setState] = useState<State<Answer>>({ pages: [], error: undefined, isLoading: true })
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
