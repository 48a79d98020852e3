import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './root.js'
import { type Machine, ServicesMissing } from './services.js'

/** Names the version of the SDK. */
const POM = join(ROOT, 'test/all/sdk/java/pom.xml')
/** Pinned, because the default depends on the version of Maven. */
const COPY_DEPENDENCIES = 'org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies'

/** A changed pom.xml gets a new folder. */
const folder = (): string => {
  const hash = createHash('sha256').update(readFileSync(POM)).digest('hex').slice(0, 12)
  return join(ROOT, 'node_modules/.cache', `java-sdk-${hash}`)
}

/**
 * Returns a folder with the jars of the official Java SDK. The first call downloads them with Maven, from the repositories in
 * Maven's own settings. Throws `ServicesMissing` with instructions.
 */
export const prepareJavaSdk = ({ env }: Pick<Machine, 'env'>): string => {
  const jars = folder()
  const complete = join(jars, 'complete')
  if (existsSync(complete)) return jars
  rmSync(jars, { recursive: true, force: true })
  const args = ['--quiet', '--batch-mode', '--file', POM, COPY_DEPENDENCIES, `-DoutputDirectory=${jars}`]
  const { status, error, stdout, stderr } = spawnSync('mvn', args, { env, encoding: 'utf8' })
  if (status !== 0) {
    const output = error?.message ?? `${stdout}${stderr}`.trim()
    throw new ServicesMissing(
      `The official Java SDK could not be installed:\n${output}\nMake a Maven repository reachable (Maven reads ~/.m2/settings.xml) and run again.`
    )
  }
  writeFileSync(complete, '')
  return jars
}
