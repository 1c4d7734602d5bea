# A package-lock.json that names no address, made installable without a network: every tarball becomes a derivation of its
# own whose hash is the lock's `integrity`, fetched by npm from wherever npm is configured to fetch. There is no second hash.
{
  lib,
  stdenv,
  stdenvNoCC,
  writeText,
  nodejs,
  cacert,
}:
lockFile:
let
  lock = lib.importJSON lockFile;

  inherit (stdenv.hostPlatform) node;
  libc = if stdenv.hostPlatform.isMusl then "musl" else "glibc";

  allows =
    want: list:
    let
      refused = builtins.filter (lib.hasPrefix "!") list;
    in
    list == [ ]
    || (if refused != [ ] then !(builtins.elem "!${want}" list) else builtins.elem want list);

  # Packages of other platforms have no address: npm skips them before it fetches anything.
  wanted =
    entry:
    allows node.platform (entry.os or [ ])
    && allows node.arch (entry.cpu or [ ])
    && allows libc (entry.libc or [ ]);

  fromRegistry =
    path: entry:
    lib.hasInfix "node_modules/" path
    && !(entry.link or false)
    && !(entry.inBundle or false)
    && !(entry ? resolved);

  # The name in the registry, which differs for an alias.
  nameOf = path: entry: entry.name or (lib.last (lib.splitString "node_modules/" path));

  tarball =
    path: entry:
    stdenvNoCC.mkDerivation {
      name = "${
        lib.strings.sanitizeDerivationName "npm-${lib.removePrefix "@" (nameOf path entry)}-${entry.version}"
      }.tgz";
      outputHash = entry.integrity or (throw "package-lock.json: ${path} has no integrity");
      outputHashMode = "flat";
      nativeBuildInputs = [
        nodejs
        cacert
      ];
      impureEnvVars = lib.fetchers.proxyImpureEnvVars ++ [ "NPM_CONFIG_REGISTRY" ];
      spec = "${nameOf path entry}@${entry.version}";
      buildCommand = ''
        export HOME=$TMPDIR NODE_EXTRA_CA_CERTS=''${NIX_SSL_CERT_FILE:-}
        mkdir fetched && cd fetched
        npm pack --silent --ignore-scripts --cache "$TMPDIR/cache" "$spec" >/dev/null
        mv ./*.tgz "$out"
      '';
    };

  paths = builtins.filter (
    path: fromRegistry path lock.packages.${path} && wanted lock.packages.${path}
  ) (builtins.attrNames lock.packages);
in
{
  # The store path of each tarball, for a machine that already has it.
  tarballs = map (path: {
    inherit (tarball path lock.packages.${path}) name;
    inherit (lock.packages.${path}) integrity;
  }) paths;

  file = writeText "package-lock.json" (
    builtins.toJSON (
      lock
      // {
        packages = lib.mapAttrs (
          path: entry:
          if builtins.elem path paths then entry // { resolved = "file:${tarball path entry}"; } else entry
        ) lock.packages;
      }
    )
  );
}
