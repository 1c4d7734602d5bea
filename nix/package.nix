{
  lib,
  stdenv,
  nodejs_22,
  makeWrapper,
  callPackage,
}:
let
  nodejs = nodejs_22;
  npmLock = callPackage ./npm-lock.nix { inherit nodejs; } ../package-lock.json;
in
stdenv.mkDerivation {
  pname = "spoke";
  inherit (lib.importJSON ../package.json) version;

  # Files that the build or the service reads. Changes of other files do not change the package.
  src = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../bin
      ../docs
      ../migrations
      ../scripts
      ../src
      ../CHANGELOG.md
      ../LICENSE
      ../package.json
      ../tsconfig.json
    ];
  };

  strictDeps = true;
  nativeBuildInputs = [
    nodejs
    makeWrapper
  ];
  # For the scripts below bin/ of the packages.
  buildInputs = [ nodejs ];

  configurePhase = ''
    runHook preConfigure
    export HOME=$TMPDIR npm_config_cache=$TMPDIR/npm npm_config_update_notifier=false
    cp --no-preserve=mode ${npmLock.file} package-lock.json
    npm ci --offline --ignore-scripts --no-audit --no-fund
    patchShebangs node_modules
    runHook postConfigure
  '';

  buildPhase = ''
    runHook preBuild
    # dist/ tells what it was made from: that is the lock as it is in the repository.
    cp --no-preserve=mode ${../package-lock.json} package-lock.json
    npm run build
    cp --no-preserve=mode ${npmLock.file} package-lock.json
    node scripts/service-manifest.mjs
    npm prune --omit=dev --offline --ignore-scripts --no-audit --no-fund
    # It refers to the tarballs, which would then be in the closure.
    rm -f node_modules/.package-lock.json
    runHook postBuild
  '';

  doCheck = true;
  checkPhase = ''
    runHook preCheck
    node bin/spoke.mjs --version
    runHook postCheck
  '';

  installPhase = ''
    runHook preInstall
    mkdir -p $out/bin $out/lib/spoke
    cp -R bin dist docs migrations node_modules CHANGELOG.md LICENSE package.json $out/lib/spoke
    # Fewer collections of garbage, for up to 100 MiB more memory under load (docs/performance.md).
    makeWrapper ${lib.getExe nodejs} $out/bin/spoke \
      --add-flags $out/lib/spoke/bin/spoke.mjs \
      --set-default NODE_OPTIONS --max-semi-space-size=64
    runHook postInstall
  '';

  passthru = { inherit npmLock; };

  meta = {
    description = "AI agents that answer chat messages from a knowledge base built from your own sources";
    license = lib.licenses.mit;
    mainProgram = "spoke";
    platforms = lib.platforms.linux;
  };
}
