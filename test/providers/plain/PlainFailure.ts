import { decodeFailure as decodeConvention } from "../../../src/providers/client/Classification.ts"
import { asFields, asText, parseJson } from "../../../src/providers/client/JsonFields.ts"

/** Error kinds whose class does not follow from the status. */
const words = new Map([["blocked", "content_filter"]])

export const decodeFailure: typeof decodeConvention = (account, response, nowMillis) => {
  const { fault } = asFields(parseJson(response.body))
  // A proxy's error page and an empty body have no `fault`.
  if (fault === undefined) return decodeConvention(account, response, nowMillis)
  const { kind, say } = asFields(fault)
  const error = { code: words.get(asText(kind)) ?? kind, message: say }
  return decodeConvention(account, { ...response, body: JSON.stringify({ error }) }, nowMillis)
}
