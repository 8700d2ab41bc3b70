/** Who may come first in `ftyp`. QuickTime (`qt  `), audio (`M4A `) and stills (`heic`, `avif`) share the format. */
const videoBrand = /^(?:iso[m2-9]|isoa|isob|isoc|mp4[12]|avc1|hvc1|hev1|av01|dash|msdh|MSNV|M4V[ HP]|cmf[c2s])$/
const followers: ReadonlySet<string> = new Set(
  "moov moof mdat free skip wide uuid pdin meta sidx styp prft emsg udta".split(" ")
)
const shortestType = 16
const frame = 8

/** The type box of a video, and behind it another box. */
export const begins = (first: Buffer): boolean => {
  if (first.length < shortestType + frame || first.toString("latin1", 4, 8) !== "ftyp") return false
  const next = first.readUInt32BE(0)
  if (next < shortestType || next % 4 !== 0 || next + frame > first.length) return false
  return videoBrand.test(first.toString("latin1", 8, 12)) && followers.has(first.toString("latin1", next + 4, next + 8))
}
