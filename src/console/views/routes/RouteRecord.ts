import type { CatalogAnswer } from "../../../http/admin/catalog/Schema.ts"
import type { ServedRoute } from "../../../http/admin/routes/Schema.ts"

/** Amounts in USD, moments in Unix seconds. */
export type RouteRecord = typeof ServedRoute.Encoded
export type CatalogRecord = typeof CatalogAnswer.Encoded
