import { formatCount } from "../format/Amount.ts"

export const Pager = ({
  pages
}: {
  readonly pages: {
    readonly rows: ReadonlyArray<unknown>
    readonly hasMore: boolean
    readonly isLoading: boolean
    readonly loadMore: () => void
  }
}) => (
  <div class="pager">
    <span class="soft" role="status">
      {pages.isLoading ? "Loading…" : `${formatCount(pages.rows.length)}${pages.hasMore ? " so far" : " in all"}`}
    </span>
    {pages.hasMore && (
      <button onClick={pages.loadMore} disabled={pages.isLoading}>
        Show more
      </button>
    )}
  </div>
)
