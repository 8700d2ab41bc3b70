import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef } from "preact/hooks"
import { wasNavigated } from "../BrowserState.ts"
import { useIsHidden } from "../SignedIn.ts"

/** A view with its heading, which gets the focus after navigation from another view. */
export const Page = ({
  actions,
  children,
  lead,
  recordId,
  title
}: {
  readonly title: string
  /** The id of the record that the page shows, below the heading. */
  readonly recordId?: string | undefined
  /** Beside the heading, such as a badge. */
  readonly lead?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) => {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${recordId === undefined ? title : `${title} ${recordId}`} · Gateway`
  }, [title, recordId])
  useLayoutEffect(() => {
    if (!wasNavigated()) return
    scrollTo(0, 0)
    heading.current?.focus({ preventScroll: true })
  }, [])
  return (
    <>
      <div class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {lead}
        <div class="actions">{actions}</div>
        {recordId && (
          <code class="soft record-id">
            <bdi>{recordId}</bdi>
          </code>
        )}
      </div>
      {children}
    </>
  )
}

export const Section = ({
  actions,
  children,
  isInternal,
  title
}: {
  readonly title: string
  readonly actions?: ComponentChildren
  /** Hidden from members. */
  readonly isInternal?: boolean
  readonly children: ComponentChildren
}) =>
  useIsHidden(isInternal) ? null : (
    <section class="section" aria-label={title}>
      <div class="section-head">
        <h2>{title}</h2>
        <div class="actions">{actions}</div>
      </div>
      {children}
    </section>
  )
