import { videoAdapterContract } from "../../contracts/VideoAdapter.ts"
import { harnesses } from "./Hosts.ts"

for (const harness of harnesses) videoAdapterContract(harness)
