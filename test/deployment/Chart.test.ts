/** The chart: its values and templates, and where Helm is there, what it renders, held against Kubernetes' schemas. */
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { parse, parseAllDocuments } from "yaml"
import { fromRecord, Variables } from "../../src/app/config/Config.ts"
import { fileVariables } from "../../src/app/config/SecretFiles.ts"
import { found, longestDrainSeconds, read, root, toolPackage, tools } from "./Tools.ts"

const known: ReadonlySet<string> = new Set([...Object.keys(Variables.fields), ...fileVariables])
const chart = Path.join(root, "deploy/helm/spoke")
const values = parse(read("deploy/helm/spoke/values.yaml"))
const templates = Fs.readdirSync(Path.join(chart, "templates"))
  .map((name) => read("deploy/helm/spoke/templates", name))
  .join("\n")
const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-chart-"))

afterAll(() => Fs.rmSync(folder, { recursive: true, force: true }))

describe("The chart", () => {
  it("has the version of the package", () => {
    const { version } = JSON.parse(read("package.json"))
    expect(parse(read("deploy/helm/spoke/Chart.yaml"))).toMatchObject({
      apiVersion: "v2",
      name: "spoke",
      version,
      appVersion: version
    })
  })

  it("uses every value that it documents, and no other", () => {
    const used = new Set(Array.from(templates.matchAll(/\.Values\.([\w.]+)/gu), ([, name = ""]) => name))
    const at = (name: string) =>
      name.split(".").reduce((value, key) => (value === undefined ? undefined : value[key]), values)
    expect([...used].filter((name) => at(name) === undefined)).toEqual([])
    const leaves = (value: unknown, name: string): ReadonlyArray<string> =>
      used.has(name) || typeof value !== "object" || value === null
        ? [name]
        : Object.entries(value).flatMap(([key, inner]) => leaves(inner, name === "" ? key : `${name}.${key}`))
    expect(leaves(values, "").filter((name) => !used.has(name))).toEqual([])
  })

  it("sets variables of Spoke alone, and takes secrets from files", () => {
    const names = [
      ...Object.keys(values.settings),
      ...values.secretKeys.map((name: string) => `${name}_FILE`)
    ]
    expect(names.filter((name) => !known.has(name))).toEqual([])
  })

  it("is installed as the documentation says: the secret has each key, and no variable is missing", async () => {
    const [, text = ""] =
      /```text\n(kubectl create secret[\s\S]*?)```/u.exec(read("docs/containers.md")) ?? []
    const named = (pattern: RegExp) => Array.from(text.matchAll(pattern), ([, ...words]) => words)
    const stored = named(/--from-literal=(\w+)/gu).flat()
    const [keys] = named(/secretKeys=\{([\w,]+)\}/gu).flat()
    const mounted: ReadonlyArray<string> = keys?.split(",") ?? values.secretKeys
    expect(mounted.filter((name) => !stored.includes(name))).toEqual([])
    const example = (name: string) => (name === "DATABASE_URL" ? "postgres://db/spoke" : "s".repeat(40))
    const settings = named(/--set settings\.(\w+)=(\S+)/gu)
    expect(settings.map(([name]) => name)).toContain("SPOKE_ARTIFACTS")
    const variables = {
      ...values.settings,
      ...Object.fromEntries(settings),
      ...Object.fromEntries(mounted.map((name) => [name, example(name)]))
    }
    const found = await Effect.runPromise(Effect.either(fromRecord(variables, false)))
    expect(found).toMatchObject({ _tag: "Right" })
  })

  it("gives a pod longer than a drain takes", () => {
    const delay = Duration.toSeconds(values.settings.SPOKE_DRAIN_DELAY)
    expect(values.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(delay + longestDrainSeconds + 5)
  })

  it("closes every block that it opens", () => {
    const opened = templates.match(/\{\{-? (?:if|range|define|with) /gu)?.length
    expect(templates.match(/\{\{-? end \}\}/gu)?.length).toBe(opened)
  })
})

const helm = found("helm", ["version"])

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly spec: any
}

const rendered = (...settings: ReadonlyArray<string>): ReadonlyArray<Manifest> =>
  parseAllDocuments(
    execFileSync(helm ?? "", ["template", "one", chart, ...settings.flatMap((one) => ["--set", one])], {
      encoding: "utf8"
    })
  )
    .map((document) => document.toJS())
    .filter((document) => document !== null)

/** What installations differ in. */
const installations: Readonly<Record<string, ReadonlyArray<string>>> = {
  "as it comes": [],
  "that grows by itself": ["server.autoscaling.enabled=true", "worker.autoscaling.enabled=true"],
  "with an address, by digest": [
    "ingress.enabled=true",
    "ingress.className=nginx",
    "ingress.tlsSecret=spoke-tls",
    "ingress.annotations.example=yes",
    `image.digest=sha256:${"0".repeat(64)}`
  ],
  "on nodes of its own, with a shared volume and without migrations": [
    "originals.existingClaim=originals",
    "migrations.enabled=false",
    "nodeSelector.disk=fast",
    "tolerations[0].key=spoke,tolerations[0].operator=Exists",
    "imagePullSecrets[0].name=registry",
    "podAnnotations.example=yes",
    "settings.SPOKE_TENANT_ROLE=null"
  ]
}

describe.skipIf(helm === undefined)("Helm", () => {
  it("finds nothing to complain about in the chart", () => {
    const { status, stdout } = spawnSync(helm ?? "", ["lint", "--strict", chart], { encoding: "utf8" })
    expect([status, stdout.match(/\[(?:WARNING|ERROR)\].*/gu)]).toEqual([0, null])
  })

  it("renders servers and workers without privileges, with probes, a budget each, and migrations before them", () => {
    const all = rendered(
      "ingress.enabled=true",
      "server.autoscaling.enabled=true",
      "worker.autoscaling.enabled=true"
    )
    expect(all.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted()).toEqual([
      "Deployment one-server",
      "Deployment one-worker",
      "HorizontalPodAutoscaler one-server",
      "HorizontalPodAutoscaler one-worker",
      "Ingress one",
      "Job one-migrate",
      "PodDisruptionBudget one-server",
      "PodDisruptionBudget one-worker",
      "Service one"
    ])
    for (const { kind, spec } of all) {
      if (kind !== "Deployment" && kind !== "Job") continue
      const pod = spec.template.spec
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true })
      // Kubernetes would set variables such as SPOKE_SERVICE_HOST.
      expect(pod.enableServiceLinks).toBe(false)
      const [container] = pod.containers
      expect(container.securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] }
      })
      const environment: ReadonlyArray<{ readonly name: string; readonly value: string }> = container.env
      expect(environment.filter(({ name }) => !known.has(name))).toEqual([])
      expect(environment.map(({ name }) => name)).toContain("DATABASE_URL_FILE")
      if (kind === "Deployment")
        expect([
          container.livenessProbe.httpGet.path,
          container.readinessProbe.httpGet.path,
          // The autoscaler decides.
          spec.replicas
        ]).toEqual(["/healthz", "/readyz", undefined])
    }
  })

  it("lets workers grow by the age of the queue, and names the image by its digest where there is one", () => {
    const digest = `sha256:${"0".repeat(64)}`
    const all = rendered("worker.autoscaling.enabled=true", `image.digest=${digest}`)
    const scaler = all.find(({ kind }) => kind === "HorizontalPodAutoscaler")
    expect(scaler?.spec).toMatchObject({
      scaleTargetRef: { name: "one-worker" },
      metrics: [
        {
          external: {
            metric: { name: "spoke_queue_oldest_waiting_seconds" },
            target: { type: "Value", value: "20" }
          }
        }
      ]
    })
    const images = all.flatMap(({ spec }) => spec.template?.spec.containers ?? []).map(({ image }) => image)
    expect(new Set(images)).toEqual(new Set([`spoke@${digest}`]))
  })

  describe.skipIf(tools === undefined)("and the schemas of Kubernetes", () => {
    it.each(Object.entries(installations))("agree for an installation %s", (_, settings) => {
      const all = rendered(...settings)
      expect(all.length).toBeGreaterThan(4)
      for (const manifest of all) {
        const models = toolPackage(`kubernetes-models/${manifest.apiVersion}`)
        expect(() => new models[manifest.kind](manifest).validate()).not.toThrow()
      }
    })

    it("know every field that any installation sets, by their types", () => {
      const all = Object.values(installations).flatMap((settings) => rendered(...settings))
      const lines = all.map(
        ({ apiVersion, kind }, place) =>
          `import { type I${kind} as T${place} } from "kubernetes-models/${apiVersion}/${kind}"\n` +
          `export const m${place}: T${place} = ${JSON.stringify(all[place])}`
      )
      const compiled = (text: string) => {
        // Beside the packages, so that they are found.
        const project = Fs.mkdtempSync(Path.join(tools ?? "", "manifests-"))
        try {
          Fs.writeFileSync(Path.join(project, "manifests.ts"), text)
          const options = [
            "--noEmit",
            "--strict",
            "--skipLibCheck",
            "--module",
            "preserve",
            "--moduleResolution",
            "bundler"
          ]
          const compiler = Path.join(root, "node_modules/typescript/bin/tsc")
          return spawnSync(process.execPath, [compiler, ...options, "manifests.ts"], {
            cwd: project,
            encoding: "utf8"
          }).stdout
        } finally {
          Fs.rmSync(project, { recursive: true })
        }
      }
      expect(compiled(lines.join("\n"))).toBe("")
      expect(
        compiled(lines.join("\n").replaceAll("terminationGracePeriodSeconds", "terminationGraceSeconds"))
      ).toContain("terminationGraceSeconds")
    })
  })
})
