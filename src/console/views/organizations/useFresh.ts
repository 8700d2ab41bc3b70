import { useEffect, useRef } from "preact/hooks"
import type { Page, Pages } from "../../api/usePages.ts"
import type { Organization } from "./records.ts"

/** Loads a list anew when money has moved, unless its reader went on to further pages. */
export const useFresh = <Row>(
  pages: Pages<Row, Page<Row>>,
  { balance_usd, held_usd }: Organization,
  limit: number
): Pages<Row, Page<Row>> => {
  const money = `${balance_usd} ${held_usd}`
  const shown = useRef(money)
  useEffect(() => {
    if (shown.current !== money && pages.rows.length <= limit) pages.refresh()
    shown.current = money
  }, [money])
  return pages
}
