/** From 0 in steps of 1, 2 or 5 times a power of ten, up to the first that is not below the most. */
export const valueTicks = (most: number, count = 3): ReadonlyArray<number> => {
  if (!(most > 0)) return [0, 1]
  const rough = most / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5].find((factor) => factor * power >= rough * 0.999) ?? 10) * power
  return Array.from({ length: Math.ceil((most / step) * 0.999_999) + 1 }, (_, at) =>
    Number((at * step).toPrecision(12))
  )
}
