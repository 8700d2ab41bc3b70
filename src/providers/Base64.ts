const withoutPadding = (text: string): number => {
  let end = text.length
  while (end > 0 && text.length - end < 2 && text[end - 1] === "=") end--
  return end
}

/** The bytes of a base64 text, of either alphabet, with or without padding; undefined where it is none. */
export const fromBase64 = (given: string): Uint8Array | undefined => {
  const text = /\s/.test(given) ? given.replaceAll(/\s+/g, "") : given
  const digits = withoutPadding(text)
  const bytes = Buffer.from(text, "base64")
  // Node skips what is no base64: then fewer bytes come out than the digits stand for.
  return digits % 4 !== 1 && bytes.length === Math.floor((digits * 3) / 4) ? bytes : undefined
}
