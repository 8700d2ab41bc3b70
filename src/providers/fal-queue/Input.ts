import { submissions } from "../jobs/Input.ts"
import { optionsOf } from "./Options.ts"

/** Requests as jobs of fal's models. */
export const written = submissions({ options: optionsOf, pictureField: "image_urls", clipField: "image_url" })
