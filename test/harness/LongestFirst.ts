/** The order of the test files. */

import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Most of them wait for leases to lapse and processes to end: nobody is to wait for one of them alone in the end. */
const long = /\/test\/(crashes|model|chaos|fuzz|cli|database)\//

/** Of a clean clone, vitest would know the files' sizes only. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const usual = super.sort.bind(this)
    const sorted = await usual(files)
    const isLong = ({ moduleId }: TestSpecification) => long.test(moduleId)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}
