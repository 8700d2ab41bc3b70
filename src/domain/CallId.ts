/** The signature of reasoning that no host signed. A client returns it, and no host would accept it. */
export const unsigned = "ggw-unsigned"

export const callIdMark = "~sig~"
const longestSignature = 16_384

export interface CallId {
  readonly id: string
  readonly signature?: string
}

/** The id of a tool call on our wire, with its signature if that has at most 16384 characters. */
export const callIdOnWire = (id: string, signature: string | undefined): string =>
  signature === undefined || signature.length > longestSignature ? id : `${id}${callIdMark}${signature}`

export const readCallId = (onWire: string): CallId => {
  const at = onWire.indexOf(callIdMark)
  return at < 1 ? { id: onWire } : { id: onWire.slice(0, at), signature: onWire.slice(at + callIdMark.length) }
}
