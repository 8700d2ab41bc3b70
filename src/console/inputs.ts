import type { writtenInputs } from "../services/admin/WrittenInputs.ts"

declare const gatewayInputs: typeof writtenInputs

/** What operators write, as its definitions say; the build puts it here. */
export const inputs = gatewayInputs
