import type { consoleInputs } from "../services/admin/ConsoleInputs.ts"

declare const gatewayInputs: typeof consoleInputs

/** What operators write, as its definitions say; the build puts it here. */
export const inputs = gatewayInputs
