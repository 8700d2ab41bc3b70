/**
 * What is left of charges after their cost, such as `16.7 %`; null where nothing was charged. A margin leaves out what has no
 * known cost, as the cost does, so both together are the charges that it is of.
 */
export const formatMarginShare = (
  margin: number | null | undefined,
  cost: number | null | undefined
): string | null => {
  if (margin === null || margin === undefined || cost === null || cost === undefined) return null
  const charged = margin + cost
  // Sums of doubles miss zero by less than a nano-dollar.
  if (charged < 1e-9 / 2) return null
  const tenths = Math.round((margin / charged) * 1000)
  return `${tenths < 0 ? "−" : ""}${Math.abs(tenths) / 10} %`
}
