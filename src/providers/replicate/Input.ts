import { submissions } from "../jobs/Input.ts"
import { optionsOf } from "./Options.ts"

/** Requests as predictions of Replicate's models. */
export const written = submissions({ options: optionsOf, pictureField: "image_input", clipField: "image" })
