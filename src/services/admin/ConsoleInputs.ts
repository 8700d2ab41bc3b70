import { limits } from "../access/Key.ts"
import { describeInputs, type InputDescription } from "../resources/ResourceInput.ts"
import { settings } from "./Organizations.ts"

/** Describes the fields of the console's forms. The build copies this to the browser, which cannot import the services. */
export const consoleInputs: { readonly [Resource in "key" | "organization"]: ReadonlyArray<InputDescription> } = {
  key: describeInputs(limits),
  organization: describeInputs(settings)
}
