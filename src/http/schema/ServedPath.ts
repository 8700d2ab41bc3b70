export const apiPrefix = "/v1"

/** The path at which an endpoint of the contract is served. */
export const servedPath = ({ path }: { readonly path: string }): string => `${apiPrefix}${path}`
