import { videoAdapterContract } from "../contracts/VideoAdapter.ts"
import { harnesses } from "./FalQueueHosts.ts"

for (const harness of harnesses) videoAdapterContract(harness)
