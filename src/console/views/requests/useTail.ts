import { useEffect, useRef, useState } from "preact/hooks"
import type { ApiError } from "../../api/ApiError.ts"
import { addressOf, get, type QueryValues } from "../../api/Client.ts"
import { type Page, usePages } from "../../api/usePages.ts"
import { usePolling } from "../../api/usePolling.ts"
import { asApiError } from "../../api/useResource.ts"
import { arrivals, type Listed, merge } from "./Tail.ts"

const everySeconds = 3
const polled = 200
/** With more than these the list starts anew. */
const maxShown = 2000

interface Tail<Row> {
  readonly address: string
  readonly shown: ReadonlyArray<Row>
  readonly waiting: ReadonlyArray<Row>
  /** Others may lie between those that wait and those that are shown. */
  readonly hasGap: boolean
  readonly error?: ApiError
}

/** A list that grows at its top while it is live; new rows wait while somebody reads. */
export const useTail = <Row extends Listed>(
  path: string,
  query: QueryValues,
  isLive: boolean,
  isReading: () => boolean
) => {
  const pages = usePages<Row>(path, query)
  const address = addressOf(path, query)
  const empty: Tail<Row> = { address, shown: [], waiting: [], hasGap: false }
  const [state, setState] = useState(empty)
  const tail = state.address === address ? state : empty
  const latest = useRef({ pages, tail })
  latest.current = { pages, tail }
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [address, isLive])

  const startAnew = () => {
    setState(empty)
    latest.current.pages.refresh()
  }

  const receive = ({ data, has_more }: Page<Row>) => {
    const { pages, tail } = latest.current
    const known = merge(pages.rows, tail.shown)
    const more = { afterKnown: pages.hasMore, afterNewest: has_more }
    const { changed, fresh, isGap } = arrivals(known, data, more)
    const hasGap = isGap || known.length + fresh.length > maxShown
    const shown = merge(tail.shown, changed)
    if (isReading()) return setState({ address, shown, waiting: fresh, hasGap })
    return hasGap ? startAnew() : setState({ ...empty, shown: merge(shown, fresh) })
  }

  const poll = async (signal: AbortSignal) => {
    try {
      const page = await get<Page<Row>>(path, { ...query, limit: polled }, signal)
      if (!signal.aborted) receive(page)
    } catch (error) {
      if (!signal.aborted) setState({ ...latest.current.tail, error: asApiError(error) })
    }
    if (controller.current?.signal === signal) controller.current = undefined
  }

  usePolling(isLive ? everySeconds : undefined, () => {
    const isAsking = controller.current !== undefined && !controller.current.signal.aborted
    if (isAsking || latest.current.pages.isLoading) return
    controller.current = new AbortController()
    void poll(controller.current.signal)
  })

  return {
    pages: { ...pages, rows: merge(pages.rows, tail.shown), error: pages.error ?? tail.error },
    waiting: tail.waiting.length,
    showWaiting: () => (tail.hasGap ? startAnew() : setState({ ...empty, shown: merge(tail.shown, tail.waiting) }))
  }
}
