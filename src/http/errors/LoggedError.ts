import { withoutQuotations } from "../../domain/Quotations.ts"
import type { ToldError } from "../../services/requests/RequestEntry.ts"
import type { WireError } from "./ErrorMessages.ts"
import { type FieldNames, renameField } from "./FieldNames.ts"

/**
 * What the log keeps of an error: param, message and hint as its client was told. Only dialects with names of their own
 * for the fields pass on a vendor's reason.
 */
export const loggedError = (
  { body, reason }: Pick<WireError, "body" | "reason">,
  names: FieldNames | undefined
): ToldError =>
  names === undefined
    ? body.error
    : renameField(body.error, names, reason === undefined ? undefined : withoutQuotations(reason))
