import { withoutQuotations } from "../../domain/Quotations.ts"
import { unusableReference } from "../../domain/ReferenceProblem.ts"
import type { ReportedError } from "../../services/requests/RequestEntry.ts"
import type { WireError } from "./ErrorMessages.ts"

/** The names that a dialect has for the fields of a chat. */
export type FieldNames = Readonly<Record<string, string>>

/** The message about a picture is always the same. */
const withReason = (error: Named, reason: string): Named =>
  error.message === unusableReference ? { ...error, hint: reason } : { ...error, message: reason }

interface Named {
  readonly message: string
  readonly hint?: string | undefined
  readonly param: string | null
}

/** A refusal in the words of a dialect; `reason` has the vendor's, by which clients recover. */
export const renameField = (error: Named, names: FieldNames, reason?: string): Named => {
  const { hint, message, param } = reason === undefined ? error : withReason(error, reason)
  const name = param === null ? undefined : names[param]
  const rename = (text: string) => (name === undefined ? text : text.replaceAll(`\`${param}\``, `\`${name}\``))
  return {
    message: rename(message),
    param: name ?? param,
    ...(hint === undefined ? undefined : { hint: rename(hint) })
  }
}

/**
 * Returns the param, message and hint that the log keeps: those of the answer. Only dialects with their own field names pass
 * on a vendor's reason.
 */
export const loggedError = (
  { body, reason }: Pick<WireError, "body" | "reason">,
  names: FieldNames | undefined
): ReportedError =>
  names === undefined
    ? body.error
    : renameField(body.error, names, reason === undefined ? undefined : withoutQuotations(reason))
