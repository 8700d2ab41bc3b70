import type { ComponentChildren, ComponentProps } from "preact"
import { formatUsd, partsOfUsd, subtractUsd } from "../format/Amount.ts"
import { formatLocal, formatSpan, formatUtc } from "../format/Dates.ts"
import { useIsHidden } from "../SignedIn.ts"
import type { Tone } from "./Status.ts"

/** Cuts text to a maximum length, with an ellipsis. */
export const shorten = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`

export const Badge = ({ children, tone = "soft" }: { readonly tone?: Tone; readonly children: ComponentChildren }) => (
  <span class={`badge ${tone}`}>{children}</span>
)

/** Renders nothing for members. Takes a function, because members' records lack the internal fields that it reads. */
export const Internal = ({ children }: { readonly children: () => ComponentChildren }) =>
  useIsHidden(true) ? null : <>{children()}</>

const maxUnfolded = 160

/** Text of any length and direction. Long text is folded. */
export const Long = ({ text }: { readonly text: string }) =>
  text.length <= maxUnfolded ? (
    <bdi>{text}</bdi>
  ) : (
    <details class="long">
      <summary>
        <bdi>{text.slice(0, maxUnfolded)}</bdi>…
      </summary>
      <bdi>{text}</bdi>
    </details>
  )

/** Unix seconds in local time, or as time ago. The tooltip shows UTC. */
export const Time = ({
  at,
  isRelative = false
}: {
  readonly at: number | null | undefined
  readonly isRelative?: boolean
}) => {
  if (at === null || at === undefined) return <span class="soft">–</span>
  const utc = formatUtc(at)
  const span = Date.now() / 1000 - at
  const [day, hour] = formatLocal(at).split(" ")
  return (
    <time dateTime={`${utc.replace(" ", "T")}Z`} title={`${isRelative ? `${formatLocal(at)}, ` : ""}${utc} UTC`}>
      {isRelative ? (
        <span>{span < 0 ? `in ${formatSpan(-span)}` : `${formatSpan(span)} ago`}</span>
      ) : (
        <>
          <span>{day}</span> <span>{hour}</span>
        </>
      )}
    </time>
  )
}

/** Shows every digit. In a column, `--decimals` aligns the decimal points. */
export const Usd = ({
  amount,
  none = "–",
  precision
}: {
  readonly amount: number | null | undefined
  /** The text of a missing amount, such as `unknown`. */
  readonly none?: string | undefined
  /** The maximum number of decimals, by default 9. */
  readonly precision?: number
}) => {
  if (amount === null || amount === undefined) return <span class="soft">{none}</span>
  const { decimals, dollars } = partsOfUsd(amount, precision)
  return (
    <span class={amount < 0 ? "usd negative" : "usd"}>
      {dollars}.<span class="decimals">{decimals}</span>
    </span>
  )
}

/** Whole cents are large and the decimals after them small. An amount below one cent is large as a whole. */
export const Headline = ({ amount, none }: ComponentProps<typeof Usd>) => {
  if (amount === null || amount === undefined) return <Usd amount={amount} none={none} />
  const { decimals, dollars } = partsOfUsd(amount)
  const cut = Math.abs(amount) < 0.01 ? decimals.length : 2
  return (
    <span class={amount < 0 ? "usd negative" : "usd"}>
      {dollars}.{decimals.slice(0, cut)}
      <small>{decimals.slice(cut)}</small>
    </span>
  )
}

export interface NetCharge {
  readonly charge: number
  /** The refunded part of `charge`. */
  readonly refund: number
}

export const RefundBadge = ({ charge, refund }: NetCharge) =>
  refund > 0 ? <Badge tone="warn">{refund < charge ? "partially refunded" : "refunded"}</Badge> : null

export const netOf = ({ charge, refund }: NetCharge): number => subtractUsd(charge, refund)

/** The charge after refunds. The tooltip shows both. */
export const Charge = (netCharge: NetCharge) => {
  const { charge, refund } = netCharge
  const net = netOf(netCharge)
  if (refund === 0) return <Usd amount={charge} />
  return (
    <span title={`Net charge ${formatUsd(net)}: charged ${formatUsd(charge)}, refunded ${formatUsd(refund)}`}>
      <RefundBadge {...netCharge} /> <Usd amount={net} />
    </span>
  )
}

/** The label of a tile. Its link covers the whole tile. `name` is the accessible name of the link. */
export const TileLabel = ({
  href,
  label,
  name = label
}: {
  readonly label: string
  readonly href?: string | undefined
  readonly name?: string
}) => (
  <dt class="soft">
    {href === undefined ? (
      label
    ) : (
      <a href={href} aria-label={name}>
        {label}
      </a>
    )}
  </dt>
)

/** Names and values of one record, in columns. */
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
  /** The text if there is no amount, by default a dash. */
  readonly none?: string | undefined
  readonly code?: string | null
}

const valueOf = ({ at, children, code, none, usd }: Value) => {
  if (at !== undefined) return <Time at={at} />
  if (usd !== undefined) return <Usd amount={usd} none={none} />
  return code ? <code>{code}</code> : (children ?? <span class="soft">–</span>)
}

/** A name and a value, or a dash or `none` if there is no value. */
export const Fact = ({
  isInternal,
  name,
  ...value
}: Value & { readonly name: string; readonly isInternal?: boolean }) =>
  useIsHidden(isInternal) ? null : (
    <div>
      <dt>{name}</dt>
      <dd>{valueOf(value)}</dd>
    </div>
  )
