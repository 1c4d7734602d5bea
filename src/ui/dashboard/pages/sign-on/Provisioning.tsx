/** The SCIM address and the token with which the provider manages people and groups. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { makeProvisioningToken, provisioning, revokeProvisioningToken } from "../../api/SingleSignOn.ts"
import { Button } from "../../components/Button.tsx"
import { Copyable } from "../../components/Copyable.tsx"
import { Actions, ConfirmButton } from "../../components/Dialog.tsx"
import { useShowSecret } from "../../components/OneTimeSecret.tsx"
import { Loaded, Section } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  {
    title: "Provisioning",
    lead: "The provider adds people and groups by SCIM, switches them off and removes them. Enter this address and a token there.",
    address: "SCIM address",
    make: "New token",
    replace: "Replace the token",
    replacing: "The provider can change nobody until the new token is entered there.",
    token: "Token",
    once: "It is not shown again. A token that there was is void from now on.",
    present: (prefix: string, since: string) => `There is a token, ${prefix}…, made ${since}.`,
    used: (when: string) => `Last used ${when}.`,
    unused: "Not used yet.",
    revoke: "Revoke",
    revocation: "Revoke the token",
    question: "The provider can change nobody any more. People stay as they are."
  },
  {
    title: "Bereitstellung",
    lead: "Der Anbieter fügt Personen und Gruppen über SCIM hinzu, schaltet sie ab und entfernt sie. Diese Adresse und ein Token dort eintragen.",
    address: "SCIM-Adresse",
    make: "Neues Token",
    replace: "Token ersetzen",
    replacing: "Der Anbieter kann niemanden ändern, bis das neue Token dort eingetragen ist.",
    token: "Token",
    once: "Es wird nicht wieder gezeigt. Ein früheres Token gilt ab jetzt nicht mehr.",
    present: (prefix: string, since: string) => `Es gibt ein Token, ${prefix}…, angelegt ${since}.`,
    used: (when: string) => `Zuletzt benutzt ${when}.`,
    unused: "Noch nicht benutzt.",
    revoke: "Widerrufen",
    revocation: "Token widerrufen",
    question: "Der Anbieter kann niemanden mehr ändern. Alle bleiben, wie sie sind."
  }
)

export const Provisioning = () => {
  const t = useText(words)
  const { ago } = useFormat()
  const queries = useQueryClient()
  const query = useQuery(provisioning)
  const showSecret = useShowSecret()
  const refresh = () => queries.invalidateQueries({ queryKey: provisioning.queryKey })
  const createToken = useMutation({
    mutationFn: makeProvisioningToken,
    onSuccess: async ({ secret }) => {
      showSecret({ title: t.token, label: t.token, help: t.once, secret })
      await refresh()
    }
  })
  return (
    <Section title={t.title} lead={t.lead} guide="single-sign-on#provisioning" beside>
      <Loaded query={query}>
        {({ token, url }) => (
          <>
            <Copyable label={t.address} value={url} />
            {token === null ? null : (
              <p>
                {t.present(token.prefix, ago(token.createdAt))}{" "}
                {token.usedAt === null ? t.unused : t.used(ago(token.usedAt))}
              </p>
            )}
            {createToken.error === null ? null : <Problem problem={createToken.error} />}
            <Actions>
              {token === null ? null : (
                <ConfirmButton
                  trigger={<Button>{t.revoke}</Button>}
                  title={t.revocation}
                  question={t.question}
                  action={t.revoke}
                  onConfirm={async () => {
                    await revokeProvisioningToken()
                    await refresh()
                  }}
                />
              )}
              {token === null ? (
                <Button busy={createToken.isPending} onClick={() => createToken.mutate()}>
                  {t.make}
                </Button>
              ) : (
                <ConfirmButton
                  trigger={<Button>{t.make}</Button>}
                  title={t.replace}
                  question={t.replacing}
                  action={t.make}
                  onConfirm={() => createToken.mutateAsync()}
                />
              )}
            </Actions>
          </>
        )}
      </Loaded>
    </Section>
  )
}
