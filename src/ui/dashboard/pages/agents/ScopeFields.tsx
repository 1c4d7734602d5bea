/** The sources that a key, a widget or a channel may read. */
import { useInfiniteQuery } from "@tanstack/react-query"
import type { Key } from "../../api/Keys.ts"
import { sources } from "../../api/Sources.ts"
import { CheckboxGroup, Switch } from "../../components/Checkboxes.tsx"
import { LoadMore } from "../../components/LoadMore.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { LabelsField, parseLabels, formatLabels } from "../sources/LabelsField.tsx"

const words = texts(
  {
    title: "Sources",
    limited: "Only some sources",
    labelsHelp:
      "Separated by commas. The key reads sources with at least one of them, and those without labels. Not for a key that may change sources.",
    chosen: "Of those, only chosen ones",
    these: "Chosen sources",
    nothing: "nothing"
  },
  {
    title: "Quellen",
    limited: "Nur manche Quellen",
    labelsHelp:
      "Durch Kommas getrennt. Der Schlüssel liest Quellen mit mindestens einem davon und solche ohne Etikett. Nicht für Schlüssel, die Quellen ändern dürfen.",
    chosen: "Davon nur ausgewählte",
    these: "Ausgewählte Quellen",
    nothing: "nichts"
  }
)

/** The values of the fields, as typed. */
export interface ScopeFieldValues {
  readonly limited: boolean
  readonly labels: string
  /** True if only `sourceIds` are read. */
  readonly chosen: boolean
  readonly sourceIds: ReadonlyArray<string>
}

export const noScope: ScopeFieldValues = { limited: false, labels: "", chosen: false, sourceIds: [] }

/** The fields of a stored scope. */
export const scopeFieldsOf = (scope: Key["sourceScope"]): ScopeFieldValues =>
  scope === null
    ? noScope
    : {
        limited: true,
        labels: formatLabels(scope.labels ?? []),
        chosen: scope.sourceIds !== undefined,
        sourceIds: scope.sourceIds ?? []
      }

/** The scope as it is sent. Nothing is sent for every source. */
export const scopeOf = ({ chosen, labels, limited, sourceIds }: ScopeFieldValues) =>
  limited ? { sourceScope: { labels: parseLabels(labels), ...(chosen ? { sourceIds } : {}) } } : {}

/** The scope as it is sent, null for every source. */
export const scopeOrNull = (value: ScopeFieldValues) => ({ sourceScope: null, ...scopeOf(value) })

/** Paths of validation issues of a scope. */
export const scopePaths = ["sourceScope.labels", "sourceScope.sourceIds"] as const

/** What a limited scope reads, after its title. */
export const useScopeText = () => {
  const t = useText(words)
  return ({ labels = [], sourceIds }: NonNullable<Key["sourceScope"]>): string => {
    const read =
      sourceIds?.length === 0
        ? t.nothing
        : formatLabels([...(labels.length === 0 ? ["–"] : labels), ...(sourceIds ?? [])])
    return `${t.title}: ${read}`
  }
}

export const useScopeTitle = () => useText(words).title

interface Props {
  readonly agentId: string
  readonly value: ScopeFieldValues
  /** Help text of the labels; without one, that of a key. */
  readonly help?: string
  readonly onChange: (value: Partial<ScopeFieldValues>) => void
  readonly errorOf: (path: (typeof scopePaths)[number]) => string | undefined
}

export const ScopeFields = ({ agentId, errorOf, help, onChange, value }: Props) => {
  const t = useText(words)
  const query = useInfiniteQuery(sources(agentId))
  const loadedSources = query.data?.pages.flatMap((page) => page.sources) ?? []
  return (
    <>
      <Switch label={t.limited} isSelected={value.limited} onChange={(limited) => onChange({ limited })} />
      {value.limited ? (
        <>
          <LabelsField
            help={help ?? t.labelsHelp}
            value={value.labels}
            onChange={(labels) => onChange({ labels })}
            error={errorOf("sourceScope.labels")}
          />
          <Switch label={t.chosen} isSelected={value.chosen} onChange={(chosen) => onChange({ chosen })} />
          {!value.chosen || loadedSources.length === 0 ? null : (
            <CheckboxGroup
              isNamedByPeople
              label={t.these}
              options={loadedSources.map(
                ({ id, labels = [], name }) => [id, name, formatLabels(labels)] as const
              )}
              value={value.sourceIds}
              onChange={(sourceIds) => onChange({ sourceIds })}
              error={errorOf("sourceScope.sourceIds")}
            />
          )}
          {value.chosen ? <LoadMore query={query} /> : null}
        </>
      ) : null}
    </>
  )
}
