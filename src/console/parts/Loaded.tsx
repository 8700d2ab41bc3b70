import type { ComponentChildren } from "preact"
import type { Resource } from "../api/useResource.ts"
import { Loading } from "./Empty.tsx"
import { ErrorBox } from "./ErrorBox.tsx"

/** Old data stays below the error of a refresh that failed. */
export const Loaded = <A,>({
  children,
  resource
}: {
  readonly resource: Resource<A>
  readonly children: (data: A) => ComponentChildren
}) => (
  <>
    {resource.error && <ErrorBox error={resource.error} retry={resource.refresh} />}
    {resource.data === undefined && resource.error === undefined && <Loading />}
    {resource.data !== undefined && children(resource.data)}
  </>
)
