import { limits } from "../access/Key.ts"
import { describeInputs, type InputDescription } from "../resources/Input.ts"

/** What the console's forms and lists are made of; the build puts it into the browser's program. */
export const writtenInputs: { readonly [Resource in "key"]: ReadonlyArray<InputDescription> } = {
  key: describeInputs(limits)
}
