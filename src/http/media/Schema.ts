import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { NoSuchPath } from "../errors/Schemas.ts"

export const Media = HttpApiGroup.make("media").add(HttpApiEndpoint.get("file", "/media/*")).addError(NoSuchPath)
