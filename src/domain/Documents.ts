/** The company that sells, as printed on statements and receipts. */
export interface Seller {
  readonly name: string
  /** Lines are separated by line breaks. */
  readonly address?: string
  readonly tax_id?: string
}

export const currency = "USD" as const
export const currencyText = "US dollars (USD)"

/** Ids end in random digits, of which these 48 bits do not repeat in practice. */
const tailOf = (id: string): string => id.replaceAll("-", "").slice(-12).toUpperCase()

/** Returns a number such as `9C8D7E6F5A4B-2026-11`, which is the same for every copy of the statement. */
export const statementNumber = (organization: string, month: string): string => `${tailOf(organization)}-${month}`

/** Returns a number such as `9C8D-7E6F-5A4B`. `id` is that of the payment, or of the ledger entry if there is no payment. */
export const receiptNumber = (id: string): string =>
  tailOf(id)
    .match(/.{1,4}/g)
    ?.join("-") ?? ""

/** Returns the kind of a statement's `payments` entry. A top-up is what an operator entered without a Stripe payment. */
export const creditKindOf = (reference: string | null): "payment" | "top-up" =>
  reference?.startsWith("stripe:") ? "payment" : "top-up"

const dateText = (at: number, options: Intl.DateTimeFormatOptions): string =>
  new Date(at).toLocaleDateString("en-GB", { ...options, timeZone: "UTC" })

interface Period {
  readonly from: number
  readonly to: number
}

/** Returns a period such as `1 to 30 November 2026`. Times are Unix milliseconds. */
export const periodText = ({ from, to }: Period, isClosed: boolean, now: number): string => {
  if (now < to) return `1 ${dateText(from, { month: "long", year: "numeric" })} to now (not closed)`
  const text = `1 to ${dateText(to - 1, { day: "numeric", month: "long", year: "numeric" })}`
  return isClosed ? text : `${text} (not closed)`
}

/** A change of an organization's discount. `at` is in Unix seconds. */
export interface DiscountChange {
  readonly at: number
  readonly from_percent: number
  readonly to_percent: number
}

const percentText = (percent: number): string =>
  percent < 0 ? `a surcharge of ${-percent} %` : percent > 0 ? `a discount of ${percent} %` : "no discount"

const utcMinute = (at: number): string => `${new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`

/** Returns a sentence about the discount that the charges of a period contain, or undefined if there was none. */
export const discountText = (percent: number, changes: ReadonlyArray<DiscountChange>): string | undefined => {
  if (changes.length === 0) return percent === 0 ? undefined : `Charges include ${percentText(percent)}.`
  const parts = changes.map(({ at, from_percent }) => `${percentText(from_percent)} until ${utcMinute(at)}`)
  return `Charges include ${parts.join(", ")}, then ${percentText(percent)}.`
}
