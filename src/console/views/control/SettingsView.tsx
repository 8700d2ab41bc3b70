import { Page } from "../../parts/Page.tsx"
import { useRole } from "../../Session.ts"
import { BlockList } from "./BlockList.tsx"
import { Instances } from "./Instances.tsx"
import { Operators } from "./Operators.tsx"

export const Settings = () => (
  <Page title="Settings">
    {useRole("owner") && <Operators />}
    <Instances />
    <BlockList />
  </Page>
)
