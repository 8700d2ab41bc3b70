import type { CatalogAnswer } from "../../../http/admin/Catalog.ts"
import type { ServedRoute } from "../../../http/admin/Routes.ts"

/** Amounts in USD, moments in Unix seconds. */
export type RouteRecord = typeof ServedRoute.Encoded
export type CatalogRecord = typeof CatalogAnswer.Encoded
