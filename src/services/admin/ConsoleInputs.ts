import { limits } from "../access/Key.ts"
import { settings } from "../admin/Organization.ts"
import { describeInputs, type InputDescription } from "../resources/Input.ts"

/** What the console's forms and lists are made of; the build puts it into the browser's program. */
export const consoleInputs: { readonly [Resource in "key" | "organization"]: ReadonlyArray<InputDescription> } = {
  key: describeInputs(limits),
  organization: describeInputs(settings)
}
