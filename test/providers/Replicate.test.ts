import { videoAdapterContract } from "../contracts/VideoAdapter.ts"
import { harness } from "./ReplicateHosts.ts"

videoAdapterContract(harness)
