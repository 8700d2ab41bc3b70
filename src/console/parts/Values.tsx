import type { ComponentChildren } from "preact"
import { formatUsd, partsOfUsd, subtractUsd } from "../format/Amount.ts"
import { formatLocal, formatSpan, formatUtc } from "../format/Moment.ts"
import { useHidden } from "../Session.ts"
import type { Tone } from "./Status.ts"

/** The beginning of an id or a name that is longer. */
export const shorten = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most - 1)}…`

export const Badge = ({ children, tone = "soft" }: { readonly tone?: Tone; readonly children: ComponentChildren }) => (
  <span class={`badge ${tone}`}>{children}</span>
)

/** Not for members, whose records do not have what it shows. */
export const Internal = ({ children }: { readonly children: () => ComponentChildren }) =>
  useHidden(true) ? null : <>{children()}</>

const maxShown = 160

/** Text of any length and direction; one that is very long is folded. */
export const Long = ({ text }: { readonly text: string }) =>
  text.length <= maxShown ? (
    <bdi>{text}</bdi>
  ) : (
    <details class="long">
      <summary>
        <bdi>{text.slice(0, maxShown)}</bdi>…
      </summary>
      <bdi>{text}</bdi>
    </details>
  )

/** Unix seconds in the reader's zone, or how long ago; in UTC where the pointer rests. */
export const Time = ({ ago = false, at }: { readonly at: number | null | undefined; readonly ago?: boolean }) => {
  if (at === null || at === undefined) return <span class="soft">–</span>
  const utc = formatUtc(at)
  const span = Date.now() / 1000 - at
  const [day, hour] = formatLocal(at).split(" ")
  return (
    <time dateTime={`${utc.replace(" ", "T")}Z`} title={`${ago ? `${formatLocal(at)}, ` : ""}${utc} UTC`}>
      {ago ? (
        <span>{span < 0 ? `in ${formatSpan(-span)}` : `${formatSpan(span)} ago`}</span>
      ) : (
        <>
          <span>{day}</span> <span>{hour}</span>
        </>
      )}
    </time>
  )
}

/** Every digit; those after the cents are written softly. */
export const Usd = ({
  amount,
  precision
}: {
  readonly amount: number | null | undefined
  /** How many decimals there may be, where not nine. */
  readonly precision?: number
}) => {
  if (amount === null || amount === undefined) return <span class="soft">–</span>
  const { fine, main, sign } = partsOfUsd(amount, precision)
  return (
    <span class={amount < 0 ? "usd negative" : "usd"}>
      {sign}
      {main}
      {fine && <span class="fine">{fine}</span>}
    </span>
  )
}

interface Charged {
  readonly charged: number
  /** Of that. */
  readonly refunded: number
}

export const RefundBadge = ({ charged, refunded }: Charged) =>
  refunded > 0 ? <Badge tone="warn">{refunded < charged ? "partly refunded" : "refunded"}</Badge> : null

/** What was paid in the end, marked where something was given back; the pointer shows how it came about. */
export const Charge = (charge: Charged) => {
  const { charged, refunded } = charge
  const paid = subtractUsd(charged, refunded)
  if (refunded === 0) return <Usd amount={charged} />
  return (
    <span title={`charged ${formatUsd(charged)}, refunded ${formatUsd(refunded)}, paid ${formatUsd(paid)}`}>
      <RefundBadge {...charge} /> <Usd amount={paid} />
    </span>
  )
}

/** Names and values of one thing, in columns; those of a wide panel are wider. */
export const Facts = ({ children, isWide }: { readonly children: ComponentChildren; readonly isWide?: boolean }) => (
  <div class={isWide ? "panel wide-facts" : "panel"}>
    <dl class="facts">{children}</dl>
  </div>
)

interface Value {
  readonly children?: ComponentChildren
  /** Unix seconds. */
  readonly at?: number | null | undefined
  readonly usd?: number | null | undefined
  readonly code?: string | null
}

const valueOf = ({ at, children, code, usd }: Value) => {
  if (at !== undefined) return <Time at={at} />
  if (usd !== undefined) return <Usd amount={usd} />
  return code ? <code>{code}</code> : (children ?? <span class="soft">–</span>)
}

/** One without a value is a dash; members see none that is internal. */
export const Fact = ({
  isInternal,
  name,
  ...value
}: Value & { readonly name: string; readonly isInternal?: boolean }) =>
  useHidden(isInternal) ? null : (
    <div>
      <dt>{name}</dt>
      <dd>{valueOf(value)}</dd>
    </div>
  )
