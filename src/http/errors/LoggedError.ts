import { withoutQuotations } from "../../domain/Quotations.ts"
import type { ReportedError } from "../../services/requests/RequestEntry.ts"
import type { WireError } from "./ErrorMessages.ts"
import { type FieldNames, renameField } from "./FieldNames.ts"

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
